// A click on a column's name sorts a table by it; another one turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const descending = head.ariaSort === "ascending" || (head.ariaSort === null && column > 2);
    for (const other of heads) other.ariaSort = null;
    head.ariaSort = descending ? "descending" : "ascending";
    const body = table.tBodies[0], of = row => row.cells[column].dataset.of;
    const compare = (a, b) => of(a).localeCompare(of(b), undefined, { numeric: true });
    const rows = [...body.rows].sort((a, b) => column > 2 ? of(a) - of(b) : compare(a, b));
    body.append(...(descending ? rows.reverse() : rows));
  }));
}
