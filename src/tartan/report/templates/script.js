"use strict";
// Sorting: a click on a column's head sorts by it, another turns the order, a third restores it.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (before === "descending") {
        body.append(...original);
        return;
      }
      const direction = before === "ascending" ? -1 : 1;
      head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      body.append(...original.slice().sort((a, b) => direction * compare(a, b, column)));
    });
  });
}

// Numbers by size, before texts by the alphabet.
function compare(a, b, column) {
  const [left, right] = [a, b].map((row) => row.cells[column].dataset.sort);
  const [x, y] = [left, right].map((text) => (text.trim() === "" ? NaN : Number(text)));
  if (Number.isNaN(x) !== Number.isNaN(y)) {
    return Number.isNaN(x) ? 1 : -1;
  }
  return Number.isNaN(x) ? left.localeCompare(right) : x - y;
}

// What a link leads to may lie in a closed part of the page.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) {
    if (node.tagName === "DETAILS") {
      node.open = true;
    }
  }
  if (target) {
    target.scrollIntoView();
  }
}
addEventListener("hashchange", reveal);
if (location.hash) {
  reveal();
}
