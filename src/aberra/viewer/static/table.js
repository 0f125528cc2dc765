// The page of a table: the server sorts, filters and pages; the browser holds a hundred rows.

import { BASE, Marks, PAGE, SIGNS, alarm, el, json, make, number, onKeys, showPages } from "./common.js"
import { showBehind, showCurve } from "./behind.js"

const HEADS = {
  id: "Id", score: "Score", percentile: "Percentile", flag: "Flag",
  reason_1: "First reason", reason_2: "Second reason", reason_3: "Third reason",
}
const NUMBERS = new Set(["score", "percentile"])
const LIMIT = 100

const state = { sort: "score", descending: true, offset: 0, at: 0, page: null, turn: 0, overview: null }
const marks = new Marks(showMarks)

function query() {
  return new URLSearchParams({
    sort: state.sort,
    descending: state.descending,
    find: el("find").value.trim(),
    flagged: el("flagged").checked,
    marked: el("marked").value,
    reason: el("reason").value,
    ...range(),
    offset: state.offset,
    limit: LIMIT,
  })
}

// The condition on a column's own values; what is no number yet does not count.
function range() {
  const column = el("column").value
  if (!column) return {}
  if (!el("text").hidden) return { column, text: el("text").value.trim() }
  const ends = ["low", "high"].map((id) => [id, el(id).value.trim().replace(",", ".")])
  return { column, ...Object.fromEntries(ends.filter(([, end]) => end !== "" && Number.isFinite(Number(end)))) }
}

function showFilters() {
  const { reasons, columns } = state.overview
  el("reason").append(...reasons.map((name) => make("option", { value: name }, name)))
  el("reason").hidden = reasons.length < 2
  el("column").append(...columns.map(({ name }) => make("option", { value: name }, name)))
  el("range").hidden = columns.length === 0
}

function chooseColumn() {
  const kind = state.overview.columns.find(({ name }) => name === el("column").value)?.kind
  el("between").hidden = kind !== "number"
  el("text").hidden = !kind || kind === "number"
  for (const id of ["low", "high", "text"]) el(id).value = ""
  goTo(0)
}

async function load(at = 0) {
  const turn = ++state.turn
  try {
    const page = await json(`/api/${PAGE}/rows?${query()}`)
    if (turn !== state.turn) return
    state.page = page
    showHeads()
    showRows()
    choose(at < 0 ? page.rows.length - 1 : at)
    el("scroller").scrollTop = at < 0 ? el("scroller").scrollHeight : 0
  } catch (error) {
    alarm(error)
  }
}

function showHeads() {
  const heads = state.page.columns.map((column) => {
    const sorted = column === state.sort
    const arrow = sorted ? (state.descending ? " ↓" : " ↑") : ""
    const button = make("button", { type: "button", "data-column": column }, HEADS[column] + arrow)
    const head = make("th", { scope: "col", class: NUMBERS.has(column) ? "number" : "" }, button)
    if (sorted) head.setAttribute("aria-sort", state.descending ? "descending" : "ascending")
    return head
  })
  const focused = document.activeElement?.dataset?.column
  el("heads").replaceChildren(make("th", { scope: "col" }, "Mark"), ...heads)
  if (focused) document.querySelector(`[data-column="${focused}"]`)?.focus()
  el("flagged-label").hidden = !state.page.columns.includes("flag")
}

function cell(row, column) {
  const value = row[column]
  if (column === "score") return make("td", { class: "number" }, number(value, 5))
  if (column === "percentile") return make("td", { class: "number" }, percentile(value))
  if (column === "flag") return make("td", {}, ...(value ? [make("span", { class: "flag" }, "anomalous")] : []))
  const text = value === null ? "" : String(value)
  return make("td", { class: column === "id" ? "id" : "reason", title: text }, text)
}

// Close to the top two decimals would all be the same.
function percentile(value) {
  if (value === null) return "–"
  return value > 99.9 ? value.toFixed(4) : value.toFixed(2)
}

function showRows() {
  const { rows, columns, total, matching, offset } = state.page
  el("rows").replaceChildren(
    ...rows.map((row) => {
      const sign = make("td", {}, make("span", { class: "sign" }))
      return make("tr", { tabindex: "-1", "aria-selected": "false" }, sign, ...columns.map((c) => cell(row, c)))
    }),
  )
  el("none").hidden = matching > 0
  const range = matching ? `${(offset + 1).toLocaleString("en")}–${(offset + rows.length).toLocaleString("en")} of ` : ""
  const among = matching === total ? "" : ` (of ${total.toLocaleString("en")})`
  el("count").textContent = `${range}${matching.toLocaleString("en")} ${matching === 1 ? "row" : "rows"}${among}`
  el("first").disabled = el("before").disabled = offset === 0
  el("after").disabled = el("last").disabled = offset + rows.length >= matching
  showMarks()
}

function showMarks() {
  const count = Object.keys(marks.held).length
  el("progress").textContent = count ? `${count.toLocaleString("en")} marked` : ""
  el("export").hidden = count === 0
  state.page?.rows.forEach((row, k) => {
    const mark = marks.held[String(row.id)] ?? ""
    const sign = el("rows").children[k].firstChild.firstChild
    sign.className = `sign ${mark}`
    sign.setAttribute("aria-label", SIGNS[mark] ?? "not marked")
    sign.setAttribute("role", "img")
  })
}

function choose(k) {
  const rows = el("rows").children
  if (!rows.length) return showBehind(null, state.overview)
  const inside = el("rows").contains(document.activeElement)
  for (const row of rows) {
    row.setAttribute("aria-selected", "false")
    row.tabIndex = -1
  }
  state.at = Math.min(Math.max(k, 0), rows.length - 1)
  const row = rows[state.at]
  row.setAttribute("aria-selected", "true")
  row.tabIndex = 0
  row.scrollIntoView({ block: "nearest" })
  showBehind(state.page.rows[state.at], state.overview)
  if (inside || document.activeElement === document.body) row.focus({ preventScroll: true })
}

function step(by) {
  const next = state.at + by
  if (next >= 0 && next < (state.page?.rows.length ?? 0)) choose(next)
  else turnPage(by)
}

function turnPage(by) {
  const offset = state.offset + by * LIMIT
  if (offset < 0 || offset >= state.page.matching) return
  state.offset = offset
  load(by < 0 ? -1 : 0)
}

function arrow(by) {
  return (event) => (event.target === document.body || event.target.closest("tbody") ? step(by) : false)
}

function mark(value) {
  const row = state.page?.rows[state.at]
  if (row) marks.set(row.row, value || null)
}

function goTo(offset) {
  state.offset = offset
  load()
}

onKeys({
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: arrow(1),
  ArrowUp: arrow(-1),
  a: () => mark("accept"),
  r: () => mark("reject"),
  u: () => mark(""),
  e: () => el("export").hidden || el("export").click(),
  "[": () => turnPage(-1),
  "]": () => turnPage(1),
  "/": () => el("find").focus(),
})
el("heads").addEventListener("click", (event) => {
  const column = event.target.closest("button")?.dataset.column
  if (!column) return
  state.descending = column === state.sort ? !state.descending : NUMBERS.has(column) || column === "flag"
  state.sort = column
  goTo(0)
})
el("rows").addEventListener("click", (event) => {
  const row = event.target.closest("tr")
  if (row) choose([...el("rows").children].indexOf(row))
})
for (const button of document.querySelectorAll(".marks button")) {
  button.addEventListener("click", () => mark(button.dataset.mark))
}
let typing
for (const id of ["find", "low", "high", "text"]) {
  el(id).addEventListener("input", () => {
    clearTimeout(typing)
    typing = setTimeout(() => goTo(0), 150)
  })
}
for (const id of ["flagged", "marked", "reason"]) el(id).addEventListener("change", () => goTo(0))
el("column").addEventListener("change", chooseColumn)
el("export").href = `${BASE}/api/${PAGE}/marked`
el("first").addEventListener("click", () => goTo(0))
el("before").addEventListener("click", () => turnPage(-1))
el("after").addEventListener("click", () => turnPage(1))
el("last").addEventListener("click", () => goTo(Math.floor((state.page.matching - 1) / LIMIT) * LIMIT))

const [title] = await Promise.all([showPages(), marks.refresh()]).catch((error) => [alarm(error)])
if (title) el("name").textContent = title
state.overview = await json(`/api/${PAGE}/overview`).catch(alarm)
if (state.overview) {
  showFilters()
  showCurve(state.overview)
}
await load()
