// Progressive: without this, cells are links and the range is typed into the fields.

const table = document.querySelector("[data-grid]");
const form = document.querySelector("[data-range]");
const note = document.querySelector("[data-range-note]");
const rows = table === null ? [] : [...table.tBodies[0].rows];
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
/** Where a selection began. */
let anchor;

if (note !== null) {
  note.textContent =
    "In the table, arrow keys move between cells. Shift and an arrow key, or Shift and a click, select a range and fill these fields.";
}

function placeOf(link) {
  const cell = link.closest("td");
  return [rows.indexOf(cell.parentElement), cell.cellIndex];
}

/** The next cell that way which is a link. */
function nextTo([row, column], [down, right]) {
  let [r, c] = [row + down, column + right];
  for (; rows[r]?.cells[c]?.tagName === "TD"; r += down, c += right) {
    const link = rows[r].cells[c].querySelector("a");
    if (link !== null) return link;
  }
}

table?.addEventListener("keydown", (event) => {
  const link = event.target.closest("td a");
  const step = STEPS[event.key];
  if (link === null || step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const next = nextTo(placeOf(link), step);
  if (next === undefined) return;
  anchor = event.shiftKey ? (anchor ?? link) : undefined;
  next.focus();
  choose(anchor, next);
});

table?.addEventListener("click", (event) => {
  const link = event.target.closest("td a");
  if (link === null || !event.shiftKey) return;
  event.preventDefault();
  anchor ??= link;
  choose(anchor, link);
});

/** Marks the cells between two of them, and fills the fields of the form with their time and workspace. */
function choose(from, to) {
  for (const cell of table.querySelectorAll(".chosen")) cell.classList.remove("chosen");
  if (from === undefined) return;
  const [[r1, c1], [r2, c2]] = [placeOf(from), placeOf(to)];
  const chosen = rows
    .slice(Math.min(r1, r2), Math.max(r1, r2) + 1)
    .flatMap((row) => [...row.cells].slice(Math.min(c1, c2), Math.max(c1, c2) + 1));
  const links = chosen.map((cell) => cell.querySelector("a")).filter((link) => link !== null);
  for (const cell of chosen) cell.classList.add("chosen");
  const workspaces = new Set(chosen.map((cell) => cell.parentElement.dataset.workspace));
  fill("from", Math.min(...links.map((link) => Number(link.dataset.from))));
  fill("to", Math.max(...links.map((link) => Number(link.dataset.to))));
  form.elements.workspace.value = workspaces.size === 1 ? [...workspaces][0] : "";
  const { from: start, to: end } = form.elements;
  note.textContent = `Selected: ${start.value} to ${end.value}, not included, ${workspaces.size === 1 ? "one workspace" : "all workspaces"}.`;
}

function fill(field, at) {
  const input = form.elements[field];
  input.value = new Date(at).toISOString().slice(0, input.type === "date" ? 10 : 16);
}
