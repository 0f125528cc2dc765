// The page of a model: what was trained, how trust moved, and which samples are doubtful. The server
// has said and counted everything; here it is only laid out.

import { PAGE, alarm, el, json, make, number, showPages } from "./common.js"

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

// `ticks` are pairs of a number and its label; the axis below is called `name`.
function frame(height, high, ticks, name, text) {
  const y = (v) => 18 + (height - 54) * (1 - v / high)
  const lines = ticks.flatMap(([v, label]) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }),
    svg("text", { x: LEFT - 8, y: y(v) + 4, "text-anchor": "end" }, label),
  ])
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": text }, ...lines)
  picture.append(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: height - 4, "text-anchor": "middle" }, name))
  return { picture, y }
}

const labelled = (...values) => values.map((v) => [v, v.toLocaleString("en")])

const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("")

function drawTrust({ quantiles, curves, kept }) {
  const count = quantiles.length
  const x = across(count)
  const text = `Median trust per round: ${quantiles.map((q) => q[2].toFixed(2)).join(", ")}. Round ${kept + 1} was kept.`
  const { picture, y } = frame(330, 1, labelled(0, 0.25, 0.5, 0.75, 1), "round", text)
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
    ? `Crossings from round 2 on: ${crossings.join(", ")}.`
    : "There was only one round."
  const { picture, y } = frame(170, top, labelled(0, top), "round", text)
  const width = Math.min(26, (0.6 * (WIDTH - LEFT - RIGHT)) / quantiles.length)
  crossings.forEach((value, k) => {
    const name = k + 1 === kept ? "column is-kept" : "column"
    const place = { x: x(k + 1) - width / 2, y: y(value), width, height: Math.max(y(0) - y(value), 1) }
    picture.append(svg("rect", { class: name, ...place }, svg("title", {}, `round ${k + 2}: ${value}`)))
  })
  picture.append(...roundNames(quantiles.length, x, 170 - 20))
  el("crossings").append(picture)
}

function drawScores({ places, shares, above, ticks, threshold }) {
  const top = Math.max(...shares)
  const x = (place) => LEFT + place * (WIDTH - LEFT - RIGHT)
  const odd = shares.reduce((sum, share, k) => sum + (above[k] ? share : 0), 0)
  const text = `Histogram of the training scores. ${percent(odd)} lie above the threshold ${threshold[1]}.`
  const { picture, y } = frame(230, top, [[0, "0"], [top, percent(top, top < 0.1 ? 1 : 0)]], "anomaly score", text)
  shares.forEach((share, k) => {
    const place = { x: x(places[k]) + 0.5, y: y(share), width: Math.max(x(places[k + 1]) - x(places[k]) - 1, 0.2) }
    if (share > 0) picture.append(svg("rect", { class: above[k] ? "column odd" : "column", ...place, height: y(0) - y(share) }))
  })
  const [at, label] = [x(threshold[0]), `threshold ${threshold[1]}`]
  const [anchor, shift] = threshold[0] > 0.7 ? ["end", -6] : ["start", 6]
  picture.append(svg("line", { class: "threshold", x1: at, x2: at, y1: 4, y2: y(0) }))
  picture.append(svg("text", { class: "strong", x: at + shift, y: 14, "text-anchor": anchor }, label))
  picture.append(...ticks.map(([place, name]) => svg("text", { x: x(place), y: 230 - 20, "text-anchor": "middle" }, name)))
  el("scores").append(picture)
  el("scores-section").hidden = false
}

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}\u00a0%`

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

const paragraphs = (sentences) => sentences.map((sentence) => make("p", {}, sentence))

// Each entry is a name, a value, and perhaps a note on the value.
function entries(list) {
  return list.flatMap(([name, value, note]) => [
    make("dt", {}, name),
    make("dd", {}, value, ...(note ? [" ", make("span", { class: "quiet" }, note)] : [])),
  ])
}

function showRounds(rounds, thing) {
  el("trust-section").hidden = false
  el("trust-text").textContent =
    `How far each of ${rounds.samples.toLocaleString("en")} training ${thing}s is trusted after each round: 1 is full trust, 0 is none. ${rounds.about_low_trust.join(" ")}`
  el("crossings-text").textContent = rounds.sentences.join(" ")
  drawTrust(rounds)
  drawCrossings(rounds)
}

async function start() {
  const [, page] = await Promise.all([showPages(), json(`/api/${PAGE}/model`)])
  el("name").textContent = page.title
  el("sentences").append(...paragraphs(page.sentences))
  el("facts").append(...entries(page.facts))
  el("words").append(...entries(page.glossary))
  if (page.rounds) showRounds(page.rounds, page.thing)
  else {
    el("sentences").append(
      ...paragraphs(["The model was not trained in rounds. Train with --robust iadc to see how the trust in each sample changes."]),
    )
  }
  el("doubts-text").textContent = page.about_doubts + (page.rounds ? " Point at a line to see its curve." : "")
  if (page.scores) {
    el("scores-text").textContent = `The bars to the right of the dashed line are ${page.thing}s that score above the threshold.`
    drawScores(page.scores)
  }
  if (!page.rounds && !page.scores) el("columns").classList.remove("two") // nothing on the left
  el("doubts-title").textContent = `Least trusted ${page.thing}s`
  el("doubts-head").textContent = page.thing[0].toUpperCase() + page.thing.slice(1)
  showDoubts(page.doubts)
}

start().catch((error) => {
  el("name").textContent = "No model"
  alarm(error)
})
