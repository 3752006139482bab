"""From files to batches: end tasks, corpora, choice by size, tokenisation, order, collation."""
