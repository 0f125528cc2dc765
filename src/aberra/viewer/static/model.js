// The page of a model: how trust moved from round to round, and who lost it.

import { PAGE, alarm, el, json, make, number, showPages } from "/static/common.js"

const WIDTH = 640
const LEFT = 44
const RIGHT = 14

function svg(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
  node.append(...children)
  return node
}

// Rounds are columns of one width, so that both pictures share their axis.
function across(count) {
  const width = (WIDTH - LEFT - RIGHT) / count
  return (t) => LEFT + width * (t + 0.5)
}

function roundNames(count, x, y) {
  const every = Math.ceil(count / 16)
  return Array.from({ length: count }, (_, t) => t)
    .filter((t) => t % every === 0)
    .map((t) => svg("text", { x: x(t), y, "text-anchor": "middle" }, String(t + 1)))
}

function frame(height, low, high, ticks, text) {
  const y = (v) => 10 + (height - 46) * (1 - (v - low) / (high - low))
  const lines = ticks.flatMap((v) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }),
    svg("text", { x: LEFT - 8, y: y(v) + 4, "text-anchor": "end" }, String(v)),
  ])
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": text }, ...lines)
  picture.append(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: height - 4, "text-anchor": "middle" }, "round"))
  return { picture, y }
}

const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("")

function drawTrust({ quantiles, curves, kept }) {
  const count = quantiles.length
  const x = across(count)
  const text = `Median trust per round: ${quantiles.map((q) => q[2].toFixed(2)).join(", ")}. Round ${kept + 1} was kept.`
  const { picture, y } = frame(330, 0, 1, [0, 0.25, 0.5, 0.75, 1], text)
  const band = (low, high, name) => {
    const there = quantiles.map((q, t) => [x(t), y(q[high])])
    const back = quantiles.map((q, t) => [x(t), y(q[low])]).reverse()
    picture.append(svg("path", { class: name, d: `${path([...there, ...back])}Z` }))
  }
  band(0, 4, "wide")
  band(1, 3, "mid")
  picture.append(svg("line", { class: "kept", x1: x(kept), x2: x(kept), y1: y(0), y2: y(1) }))
  picture.append(svg("path", { class: "median", d: path(quantiles.map((q, t) => [x(t), y(q[2])])) }))
  curves.forEach((curve, k) => {
    const d = path(curve.map((v, t) => [x(t), y(v)]))
    picture.append(svg("path", { class: "doubt", id: `curve-${k}`, d }))
  })
  picture.append(...roundNames(count, x, 330 - 20))
  el("trust").append(picture)
}

function drawCrossings({ crossings, quantiles, kept }) {
  const x = across(quantiles.length)
  const top = Math.max(...crossings, 1)
  const text = crossings.length
    ? `Samples that changed sides, from round 2 on: ${crossings.join(", ")}.`
    : "There was only one round."
  const { picture, y } = frame(170, 0, top, [0, top], text)
  const width = Math.min(26, (0.6 * (WIDTH - LEFT - RIGHT)) / quantiles.length)
  crossings.forEach((value, k) => {
    const name = k + 1 === kept ? "column is-kept" : "column"
    const place = { x: x(k + 1) - width / 2, y: y(value), width, height: Math.max(y(0) - y(value), 1) }
    picture.append(svg("rect", { class: name, ...place }, svg("title", {}, `round ${k + 2}: ${value}`)))
  })
  picture.append(...roundNames(quantiles.length, x, 170 - 20))
  el("crossings").append(picture)
}

function light(k, on) {
  const curve = el(`curve-${k}`)
  if (!curve) return
  curve.classList.toggle("chosen", on)
  if (on) curve.parentNode.append(curve) // drawn last, on top
}

function showDoubts(doubts) {
  el("doubts").replaceChildren(
    ...doubts.map((doubt, k) => {
      const reasons = doubt.reasons.map(([name, share]) => `${name}\u00a0${Math.round(100 * share)}\u00a0%`).join(", ")
      const row = make(
        "tr",
        { tabindex: "0" },
        make("td", { class: "id" }, doubt.name),
        make("td", { class: "number" }, doubt.trust < 0.001 ? "<\u00a00.001" : doubt.trust.toFixed(3)),
        make("td", { class: "number" }, number(doubt.score)),
        make("td", {}, reasons || "–"),
      )
      for (const event of ["focus", "pointerenter"]) row.addEventListener(event, () => light(k, true))
      for (const event of ["blur", "pointerleave"]) row.addEventListener(event, () => light(k, false))
      return row
    }),
  )
  el("doubts-section").hidden = doubts.length === 0
}

async function start() {
  const [, page] = await Promise.all([showPages(), json(`/api/${PAGE}/model`)])
  el("name").textContent = page.title
  el("facts").append(...page.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))
  if (page.rounds) {
    el("trust-section").hidden = false
    el("trust-text").textContent =
      `Weights of ${page.rounds.samples.toLocaleString("en")} training samples after each round; 1 is full trust, 0 is none. The sample in the middle always has 0.5.`
    drawTrust(page.rounds)
    drawCrossings(page.rounds)
  } else {
    el("facts").append(make("dt", {}, "Trust"), make("dd", {}, "This model was trained in one go, so there are no rounds to show. Train with --robust iadc to see which samples lose trust."))
  }
  showDoubts(page.doubts)
}

start().catch((error) => {
  el("name").textContent = "No model"
  alarm(error)
})
