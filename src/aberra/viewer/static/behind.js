// Beside the table: what lies behind the score of the chosen row.

import { PAGE, alarm, el, json, make, number } from "./common.js"

const WAIT = 120 // while somebody steps through the rows, only the last one is asked about
const NEAR_COLUMNS = 8
const CURVE = { width: 340, height: 64 }
const SHAPE = { width: 150, height: 34 }
let waiting
let asked = 0

export function showBehind(row, overview) {
  el("behind").hidden = row === null
  if (row === null) return
  el("behind-title").textContent = String(row.id)
  el("behind-title").title = String(row.id)
  const flag = row.flag ? ", flagged" : ""
  const higher = row.percentile === null || row.percentile === undefined ? "" : `, no lower than ${row.percentile.toFixed(2)} % of the training rows`
  el("behind-score").textContent = `Score ${number(row.score, 5)}${higher}${flag}`
  markCurve(row.score)
  if (!overview?.columns.length) {
    el("behind-note").textContent = "To see the values of this row beside what is usual, start aberra view with --model and --data."
    return
  }
  clearTimeout(waiting)
  waiting = setTimeout(() => ask(row.row), WAIT)
}

async function ask(row) {
  const turn = ++asked
  try {
    const found = await json(`/api/${PAGE}/rows/${row}`)
    if (turn !== asked) return
    el("cells").replaceChildren(...found.columns.map(cell))
    showNear(found)
    el("behind").scrollTop = 0
  } catch (error) {
    el("cells").replaceChildren()
    el("near").hidden = true
    alarm(error)
  }
}

function cell(column) {
  const share = Math.round(100 * column.share)
  const bar = make("span", { class: "bar", role: "img", "aria-label": `${share} % of the score` })
  bar.style.setProperty("--share", `${share}%`)
  const name = make("span", { class: "name", title: column.column }, column.column)
  const value = make("strong", { class: "value" }, column.value)
  const usual = make("span", { class: "quiet usual" }, column.usual)
  const shape = make("span", { class: "shape" }, ...(column.drawn ? [drawn(column)] : []))
  const part = make("span", { class: "part" }, make("span", { class: "quiet" }, `${share} %`), bar)
  return make("li", {}, name, value, usual, shape, part)
}

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
  node.append(...children)
  return node
}

// The training rows of a column as bars, and this row's value as a line; dashed if it lies beyond.
function drawn({ column, value, drawn: { shares, at, beyond } }) {
  const { width, height } = SHAPE
  const top = Math.max(...shares, 1e-9)
  const wide = width / shares.length
  const bars = shares.map((share, k) => {
    const high = (share / top) * (height - 4)
    return svg("rect", { class: "mid", x: (k * wide).toFixed(1), y: (height - high).toFixed(1), width: Math.max(wide - 1, 0.5).toFixed(1), height: high.toFixed(1) })
  })
  const where = at === null ? [] : [svg("line", { class: beyond ? "own beyond" : "own", x1: mark(at), x2: mark(at), y1: 0, y2: height })]
  const words = at === null ? "no value" : beyond ? `${value} lies beyond the usual values` : `${value} among the usual values`
  const label = `${column}: ${words}`
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...bars, ...where)

  function mark(place) {
    return (1.5 + place * (width - 3)).toFixed(1)
  }
}

function showNear({ columns, neighbours }) {
  el("near").hidden = neighbours.length === 0
  const shown = columns.slice(0, NEAR_COLUMNS)
  const head = make("tr", {}, make("th", { scope: "col" }, ""), make("th", { scope: "col", class: "number" }, "this row"), ...neighbours.map((name) => make("th", { scope: "col", class: "number" }, name)))
  const lines = shown.map((column) =>
    make("tr", {}, make("th", { scope: "row" }, column.column), make("td", { class: "number strong" }, column.value), ...column.others.map((other) => make("td", { class: other === column.value ? "number quiet" : "number" }, other))),
  )
  el("near-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...lines))
}

// All scores from high to low, the rank on a logarithmic scale: the few odd rows take their space.
let scale = null
export function showCurve({ curve, flagged }) {
  if (curve.length < 3) return
  const { width, height } = CURVE
  const last = Math.log(curve.at(-1)[0])
  const [high, low] = [curve[0][1], curve.at(-1)[1]]
  const bent = (score) => Math.asinh((4 * (score - low)) / Math.max((high - low) / 4, 1e-12))
  const x = (rank) => (Math.log(rank) / Math.max(last, 1e-9)) * (width - 8) + 4
  const y = (score) => height - 4 - (bent(score) / Math.max(bent(high), 1e-12)) * (height - 10)
  const line = curve.map(([rank, score]) => `${x(rank).toFixed(1)},${y(score).toFixed(1)}`).join(" ")
  const cut = flagged ? [svg("line", { class: "threshold", x1: x(flagged + 0.5), x2: x(flagged + 0.5), y1: 0, y2: height })] : []
  const dot = svg("circle", { class: "own-dot", r: 4, id: "curve-dot" })
  const label = `All scores from high to low${flagged ? `; ${flagged.toLocaleString("en")} rows left of the dashed line are flagged` : ""}`
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, svg("title", {}, label), ...cut, svg("polyline", { class: "median", points: line }), dot)
  el("curve").replaceChildren(picture, make("p", { class: "quiet small" }, flagged ? `All scores from high to low; left of the line: ${flagged.toLocaleString("en")} flagged.` : "All scores from high to low."))
  scale = { curve, x, y }
}

function markCurve(score) {
  const dot = document.getElementById("curve-dot")
  if (!dot || !scale || score === null) return
  const { curve, x, y } = scale
  const after = curve.findIndex(([, other]) => other <= score)
  const rank = after < 0 ? curve.at(-1)[0] : curve[after][0]
  dot.setAttribute("cx", x(rank))
  dot.setAttribute("cy", y(score))
}
