// The page of the scans: a list by score, the chosen scan, and the reviewer's marks.

import { Marks, PAGE, SIGNS, alarm, el, json, make, number, onKeys, showPages } from "./common.js"
import { VolumeView, hasWebGL } from "./volume.js"

const NO_BUNDLE =
  "Volumes cannot be drawn because NiiVue is not installed. Install npm, run make install and start again. The list and your marks work without it."
const NO_WEBGL = "Volumes cannot be drawn because WebGL 2 is off in this browser. The list and your marks work without it."

const NO_FILES = "The files of this scan are not in this folder. Start the viewer with --scans FOLDER to say where they are."
const ONLY_MAP = "Only the map is in this folder. Start the viewer with --scans FOLDER to see the scan as well."

const list = el("list")
const state = { scans: [], lines: [], at: -1, threshold: null, findings: [] }
const view = new VolumeView(el("canvas"), showPlace)
const marks = new Marks(showMarks)
let unable = "" // why no volume can be drawn at all

function line(scan, k, top) {
  const value = make("span", { class: "value" }, scan.error ? "failed" : number(scan.score))
  if (scan.score !== null) {
    const bar = make("span", { class: "bar" })
    bar.style.setProperty("--share", `${Math.max(0, (100 * scan.score) / top)}%`)
    value.append(bar)
  }
  const title = make("span", { class: "title", title: scan.name }, shortName(scan.name))
  const sign = make("span", { class: "sign", "aria-hidden": "true" })
  return make("li", { role: "option", id: `scan-${k}`, "aria-selected": "false" }, sign, title, value)
}

const shortName = (name) => name.replace(/\.nii(\.gz)?$/, "")

function label(k) {
  const scan = state.scans[k]
  const mark = SIGNS[marks.held[scan.name]]
  const score = scan.error ? "failed" : scan.score === null ? "no score" : `score ${number(scan.score)}`
  return [shortName(scan.name), score, mark].filter(Boolean).join(", ")
}

function showMarks() {
  let reviewed = 0
  state.scans.forEach((scan, k) => {
    const mark = marks.held[scan.name] ?? ""
    reviewed += mark ? 1 : 0
    const item = state.lines[k]
    if (item.dataset.mark !== mark) {
      item.dataset.mark = mark
      item.firstChild.className = `sign ${mark}`
    }
    item.setAttribute("aria-label", label(k))
  })
  el("progress").textContent = state.scans.length ? `${reviewed} of ${state.scans.length} reviewed` : ""
  const now = marks.held[state.scans[state.at]?.name] ?? ""
  for (const button of document.querySelectorAll(".marks [aria-pressed]")) {
    button.setAttribute("aria-pressed", String(button.dataset.mark === now))
  }
}

function filter() {
  const text = el("find").value.trim().toLowerCase()
  const wanted = el("marked").value
  let shown = 0
  state.scans.forEach((scan, k) => {
    const mark = marks.held[scan.name] ?? "none"
    const fits = scan.name.toLowerCase().includes(text) && (!wanted || wanted === mark)
    state.lines[k].hidden = !fits
    shown += fits ? 1 : 0
  })
  el("none").hidden = shown > 0
}

function step(by) {
  let k = state.at + by
  while (k >= 0 && k < state.scans.length && state.lines[k].hidden) k += by
  if (k >= 0 && k < state.scans.length) choose(k)
}

function choose(k) {
  state.lines[state.at]?.setAttribute("aria-selected", "false")
  state.at = k
  const [item, scan] = [state.lines[k], state.scans[k]]
  item.setAttribute("aria-selected", "true")
  item.scrollIntoView({ block: "nearest" })
  list.setAttribute("aria-activedescendant", item.id)
  history.replaceState(null, "", `#${k}`)
  el("name").textContent = shortName(scan.name)
  el("name").title = scan.name
  const score = scan.score === null ? "No score" : `Score ${number(scan.score)}`
  const size = scan.millilitres === null ? "" : `${number(scan.millilitres, 3)} ml segmented`
  el("facts").textContent = [`${k + 1} of ${state.scans.length}`, score, size].filter(Boolean).join("  ·  ")
  showMarks()
  clearTimeout(choose.timer)
  choose.timer = setTimeout(() => {
    draw(scan)
    showFindings(k).catch(alarm)
  }, 40) // keys held down pass many scans
}

function notice(text) {
  el("notice").textContent = text
  el("notice").hidden = !text
}

// What the reviewer should know about a scan before looking at it; empty if all is well.
function remark(scan) {
  if (scan.error) return `This scan could not be scored: ${scan.error}`
  if (scan.scan === null && scan.map === null) return NO_FILES
  return scan.scan === null ? ONLY_MAP : ""
}

// The pieces that were flagged, the largest first; choosing one goes there.
async function showFindings(k) {
  const select = el("finding")
  const none = make("option", { value: "" }, "No findings")
  state.findings = []
  select.disabled = true
  select.replaceChildren(none)
  if (state.scans[k].findings === null) return
  const { findings } = await json(`/api/${PAGE}/findings/${k}`)
  if (k !== state.at || !findings.length) return
  state.findings = findings
  none.textContent = findings.length === 1 ? "1 finding" : `${findings.length} findings`
  findings.forEach((one, n) => {
    const size = one.millilitres === null ? "" : `: ${number(one.millilitres, 3)} ml`
    const chance = one.p_value === null ? "" : `, p ${number(one.p_value, 2)}`
    select.append(make("option", { value: String(n) }, `${n + 1}${size}${chance}`))
  })
  select.disabled = false
}

function goToFinding() {
  const one = state.findings[Number(el("finding").value || -1)]
  if (one) view.goTo([one.x, one.y, one.z])
}

function nextFinding() {
  const select = el("finding")
  if (select.disabled) return
  select.value = String((Number(select.value || -1) + 1) % state.findings.length)
  goToFinding()
}

async function draw(scan) {
  el("place").textContent = ""
  for (const id of ["opacity", "threshold", "peak"]) el(id).disabled = scan.map === null
  el("mask").disabled = scan.mask === null
  for (const id of ["level", "window", "reset"]) el(id).disabled = scan.scan === null
  if (unable || (scan.scan === null && scan.map === null)) {
    view.clear()
    return notice(scan.error ? remark(scan) : unable || remark(scan))
  }
  const slow = setTimeout(() => notice("Loading"), 300)
  try {
    const threshold = await view.show(scan, {
      opacity: Number(el("opacity").value),
      mask: el("mask").checked,
      threshold: state.threshold,
    })
    if (threshold === null) return
    showThreshold(threshold)
    showWindow()
    notice(remark(scan))
    const next = state.scans[state.at + 1]
    if (next) view.prefetch(next)
    el("canvas").dataset.shown = scan.name
  } catch (error) {
    view.clear()
    notice(`${scan.name} cannot be shown: ${error.message}`)
  } finally {
    clearTimeout(slow)
    if (el("notice").textContent === "Loading") notice("")
  }
}

function showThreshold(value) {
  const slider = el("threshold")
  const top = view.largest || 1
  slider.max = top
  slider.step = top / 200
  slider.value = value
  el("threshold-value").textContent = number(value, 3)
}

// How bright the middle grey is, and how far black and white lie apart: in the scan's own units.
function showWindow() {
  const { low, high, least, most } = view.greys
  const range = most - least || 1
  const values = { level: (low + high) / 2, window: high - low }
  for (const [id, value] of Object.entries(values)) {
    const slider = el(id)
    slider.min = id === "level" ? least : range / 200
    slider.max = id === "level" ? most : range
    slider.step = range / 200
    slider.value = value
    el(`${id}-value`).textContent = number(value, 3)
  }
}

function changeWindow() {
  const [level, width] = ["level", "window"].map((id) => Number(el(id).value))
  view.setGreys(level - width / 2, level + width / 2)
  for (const id of ["level", "window"]) el(`${id}-value`).textContent = number(Number(el(id).value), 3)
}

function showPlace(mm, values) {
  const [x, y, z] = mm.map((v) => v.toFixed(1).replace("-", "−").padStart(6))
  const shown = ["scan", "map"].filter((name) => values[name] !== undefined)
  const text = shown.map((name) => `   ${name} ${number(values[name], 3)}`).join("")
  el("place").textContent = `x ${x}  y ${y}  z ${z} mm${text}`
}

function mark(value) {
  if (state.at >= 0) marks.set(state.at, value || null)
}

function inPicture(x, y, z) {
  return (event) => (event.target.id === "canvas" ? view.move(x, y, z) : false)
}

function arrow(by, x, y, z) {
  return (event) => {
    if (event.target.id === "canvas") return view.move(x, y, z)
    return event.target === list || event.target === document.body ? step(by) : false
  }
}

onKeys({
  j: () => step(1),
  k: () => step(-1),
  a: () => mark("accept"),
  r: () => mark("reject"),
  u: () => mark(""),
  m: () => el("mask").disabled || el("mask").click(),
  g: () => el("peak").disabled || el("peak").click(),
  f: nextFinding,
  w: () => el("reset").disabled || el("reset").click(),
  "/": () => el("find").focus(),
  ArrowDown: arrow(1, 0, -1, 0),
  ArrowUp: arrow(-1, 0, 1, 0),
  ArrowLeft: inPicture(-1, 0, 0),
  ArrowRight: inPicture(1, 0, 0),
  PageUp: inPicture(0, 0, 1),
  PageDown: inPicture(0, 0, -1),
  Home: (event) => (event.target === list ? choose(0) : false),
  End: (event) => (event.target === list ? choose(state.scans.length - 1) : false),
})
list.addEventListener("click", (event) => {
  const item = event.target.closest("li")
  if (item) choose(state.lines.indexOf(item))
})
for (const button of document.querySelectorAll(".marks button")) {
  button.addEventListener("click", () => mark(button.dataset.mark))
}
el("find").addEventListener("input", filter)
el("marked").addEventListener("change", filter)
el("opacity").addEventListener("input", (event) => {
  el("opacity-value").textContent = `${Math.round(100 * event.target.value)} %`
  view.setOpacity(Number(event.target.value))
})
el("threshold").addEventListener("input", (event) => {
  state.threshold = Number(event.target.value)
  el("threshold-value").textContent = number(state.threshold, 3)
  view.setThreshold(state.threshold)
})
el("level").addEventListener("input", changeWindow)
el("window").addEventListener("input", changeWindow)
el("reset").addEventListener("click", () => {
  view.resetGreys()
  showWindow()
})
el("mask").addEventListener("change", (event) => view.setMask(event.target.checked))
el("peak").addEventListener("click", () => view.goToPeak())
el("finding").addEventListener("change", goToFinding)
el("planes").addEventListener("change", (event) => view.setPlanes(Number(event.target.value)))

async function startDrawing(bundle) {
  if (!bundle) return NO_BUNDLE
  if (!hasWebGL()) return NO_WEBGL
  await view.start()
  view.setPlanes(Number(el("planes").value))
  return ""
}

async function start() {
  const [, { scans, remarks, bundle }] = await Promise.all([
    showPages(),
    json(`/api/${PAGE}/scans`),
    marks.refresh(),
  ])
  const top = Math.max(...scans.map((scan) => scan.score ?? 0), 1e-12)
  state.scans = scans
  state.lines = scans.map((scan, k) => line(scan, k, top))
  list.replaceChildren(...state.lines)
  showMarks()
  if (remarks.length) alarm(remarks.length === 1 ? remarks[0] : `${remarks[0]} (and ${remarks.length - 1} more)`)
  list.focus({ preventScroll: true })
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done))) // the list paints first
  unable = await startDrawing(bundle)
  const wanted = Number(location.hash.slice(1))
  choose(Number.isInteger(wanted) && wanted < scans.length ? wanted : 0)
}

start().catch(alarm)
