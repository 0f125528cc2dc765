// What every page needs: the server's answers, the other pages, marks, keys and words.

// Everything lies below a secret folder of the address, so that the cookie goes nowhere else.
export const BASE = new URL("..", import.meta.url).pathname.replace(/\/$/, "")
export const PAGE = Number(location.pathname.match(/\/view\/(\d+)$/)?.[1] ?? 0)
export const el = (id) => document.getElementById(id)
export const SIGNS = { accept: "accepted", reject: "rejected" }

// The token has done its work once the cookie is set; it should not stay in the history.
if (location.search) history.replaceState(null, "", location.pathname + location.hash)

export async function ask(path, options) {
  let answer
  try {
    answer = await fetch(BASE + path, options)
  } catch {
    throw new Error("The viewer has stopped. Start aberra view again; the marks that were saved are kept.")
  }
  if (answer.ok) return answer
  const text = await answer.text()
  let why = text
  try {
    why = JSON.parse(text).error ?? text
  } catch {
    // The guard speaks plain text.
  }
  throw new Error(why)
}

export const json = async (path, options) => (await ask(path, options)).json()

export function alarm(error) {
  el("alert").textContent = error ? (error.message ?? String(error)) : ""
  el("alert").hidden = !error
}

export function make(name, attributes = {}, ...children) {
  const node = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value
    else node.setAttribute(key, value)
  }
  node.append(...children)
  return node
}

export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–"
  const size = Math.abs(value)
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(2)
  return value.toPrecision(digits).includes("e") ? Math.round(value).toString() : value.toPrecision(digits)
}

export async function showPages() {
  const { folder, items } = await json("/api/items")
  el("folder").textContent = folder
  if (items.length > 1) {
    el("pages").append(
      ...items.map((item, k) => {
        const link = make("a", { href: `${BASE}/view/${k}` }, item.title)
        if (k === PAGE) link.setAttribute("aria-current", "page")
        return link
      }),
    )
  }
  const title = items[PAGE].title
  document.title = `${title} · Aberra`
  return title
}

// Marks of this page, by name. Others may set marks meanwhile, so they are asked for again.
export class Marks {
  constructor(changed) {
    this.held = {}
    this.changed = changed
    setInterval(() => document.hidden || this.refresh(), 10000)
    window.addEventListener("focus", () => this.refresh())
  }

  async refresh() {
    try {
      const answer = await json(`/api/${PAGE}/marks`)
      this.take(answer.marks)
      if (answer.trouble) alarm(answer.trouble)
    } catch (error) {
      alarm(error)
    }
  }

  async set(index, mark) {
    try {
      const answer = await json(`/api/${PAGE}/marks/${index}`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ mark }),
      })
      alarm(null)
      this.take(answer.marks)
    } catch (error) {
      alarm(error)
    }
  }

  take(marks) {
    this.held = marks
    this.changed()
  }
}

// Letters work everywhere but where one types; they never reach NiiVue, which has its own.
export function onKeys(actions) {
  const dialog = el("help")
  el("help-open").addEventListener("click", () => dialog.showModal())
  window.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return
      const typing = event.target.matches("input[type=search], input[type=text], select")
      if (typing && event.key === "Escape") event.target.blur()
      if (typing) return
      const action = event.key === "?" ? () => dialog.showModal() : actions[event.key]
      if (action && action(event) !== false) event.preventDefault()
      if (event.target.id === "canvas" && event.key !== "Tab") event.stopPropagation()
    },
    true,
  )
}
