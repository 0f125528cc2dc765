// One scan with its map and mask, drawn by NiiVue.

import { ask } from "./common.js"

const KEPT = 9 // files in memory: the scan, its neighbours, and their layers
const ALL_PLANES = 3
const LAYOUT = [
  { sliceType: 0, position: [0, 0, 0.6, 1] }, // axial, left, top, width, height
  { sliceType: 1, position: [0.6, 0, 0.4, 0.5] }, // coronal
  { sliceType: 2, position: [0.6, 0.5, 0.4, 0.5] }, // sagittal
]
// Colours count from zero, and nothing is drawn below the threshold. NiiVue 0.69 names this 1, but
// its shader takes 1 for the translucent kind, where opacity no longer means anything.
const FROM_ZERO_CUT_BELOW = 2
const MASK_OPACITY = 0.9

export const hasWebGL = () => document.createElement("canvas").getContext("webgl2") !== null

export class VolumeView {
  constructor(canvas, onPlace) {
    this.canvas = canvas
    this.onPlace = onPlace
    this.files = new Map()
    this.layers = {}
    this.turn = 0
  }

  async start() {
    const { NVImage, Niivue } = await import("./niivue.js")
    this.NVImage = NVImage
    this.nv = new Niivue({
      backColor: [0, 0, 0, 1],
      crosshairColor: [0.41, 0.7, 0.94, 0.9],
      crosshairWidth: 0.4,
      crosshairGap: 8,
      fontColor: [0.75, 0.82, 0.9, 1],
      dragAndDropEnabled: false,
      loadingText: "",
      logLevel: "silent",
      multiplanarShowRender: 0,
      multiplanarPadPixels: 6,
      isResizeCanvas: true,
    })
    this.nv.addColormap("aberra-map", {
      R: [200, 200, 240, 255, 255],
      G: [20, 20, 90, 165, 235],
      B: [10, 10, 0, 0, 40],
      A: [0, 255, 255, 255, 255], // zero itself is never drawn
      I: [0, 1, 85, 170, 255],
    })
    this.nv.addColormap("aberra-mask", {
      R: [0, 70], G: [0, 200], B: [0, 255], A: [0, 255], I: [0, 255],
    })
    this.nv.onLocationChange = (place) => this.tellPlace(place)
    await this.nv.attachToCanvas(this.canvas)
  }

  // Files stay a while, so that stepping back is instant; a failed one is asked for again.
  file(id) {
    const held = this.files.get(id) ?? ask(`/files/${id}`).then((answer) => answer.arrayBuffer())
    held.catch(() => this.files.delete(id))
    this.files.delete(id)
    this.files.set(id, held)
    while (this.files.size > KEPT) this.files.delete(this.files.keys().next().value)
    return held
  }

  prefetch(scan) {
    for (const id of [scan.scan, scan.map, scan.mask]) {
      if (id !== null) this.file(id).catch(() => {})
    }
  }

  async image(id, options) {
    const buffer = await this.file(id)
    return this.NVImage.loadFromUrl({ url: buffer.slice(0), name: nameOf(buffer), ...options })
  }

  // Returns the threshold in use, or null if another scan was asked for meanwhile.
  async show(scan, { opacity, mask, threshold }) {
    const turn = ++this.turn
    const wanted = {
      scan: scan.scan !== null && this.image(scan.scan, { colormap: "gray" }),
      map: scan.map !== null && this.image(scan.map, { colormap: "aberra-map", opacity }),
      mask: scan.mask !== null && this.image(scan.mask, {
        colormap: "aberra-mask", opacity: mask ? MASK_OPACITY : 0, cal_min: 0, cal_max: 1,
      }),
    }
    const loaded = await Promise.all(Object.values(wanted))
    if (turn !== this.turn) return null
    this.layers = {}
    Object.keys(wanted).forEach((name, k) => loaded[k] && (this.layers[name] = loaded[k]))
    if (this.layers.mask) keepOutline(this.layers.mask)
    const base = this.layers.scan
    this.usual = base ? [base.cal_min, base.cal_max] : [0, 1] // as NiiVue has chosen them
    if (this.layers.map) this.layers.map.colormapType = FROM_ZERO_CUT_BELOW
    const used = threshold ?? this.suggestedThreshold()
    this.limitMap(used)
    this.nv.volumes = Object.values(this.layers)
    this.nv.setVolume(this.nv.volumes[0], 0) // sends all layers to the graphics card, once
    this.goToPeak()
    return used
  }

  clear() {
    this.turn += 1
    this.layers = {}
    if (!this.nv) return
    this.nv.volumes = []
    this.nv.updateGLVolume()
  }

  get largest() {
    return this.layers.map?.global_max ?? 0
  }

  // Where the map starts to matter: at the outline of what was segmented, or half of the peak.
  suggestedThreshold() {
    const { map, mask } = this.layers
    const edge = []
    if (mask && map && mask.img.length === map.img.length) {
      for (let k = 0; k < mask.img.length; k++) if (mask.img[k] > 0) edge.push(valueAt(map, k))
    }
    edge.sort((a, b) => a - b)
    const middle = edge.length ? edge[Math.floor(edge.length / 2)] : this.largest / 2
    return Math.min(middle, 0.8 * this.largest)
  }

  limitMap(threshold) {
    const { map } = this.layers
    if (!map) return
    map.cal_min = Math.max(threshold, 1e-9)
    map.cal_max = Math.max(this.largest, map.cal_min * 1.0001)
  }

  setThreshold(value) {
    this.limitMap(value)
    this.refresh()
  }

  // The scan below the layers has not changed; sending it again would make sliders slow.
  refresh() {
    if (!this.nv?.volumes.length) return
    if (!this.layers.scan) return this.nv.updateGLVolume()
    this.nv.volumes.forEach((layer, k) => k > 0 && this.nv.refreshLayers(layer, k))
    this.nv.drawScene()
  }

  // Black and white of the scan, and its least and greatest value.
  get greys() {
    const base = this.layers.scan
    if (!base) return { low: 0, high: 1, least: 0, most: 1 }
    return { low: base.cal_min, high: base.cal_max, least: base.global_min, most: base.global_max }
  }

  setGreys(low, high) {
    const base = this.layers.scan
    if (!base) return
    base.cal_min = low
    base.cal_max = Math.max(high, low + 1e-9)
    this.nv.updateGLVolume()
  }

  resetGreys() {
    this.setGreys(...this.usual)
  }

  setOpacity(value) {
    this.setLayerOpacity("map", value)
  }

  setMask(shown) {
    this.setLayerOpacity("mask", shown ? MASK_OPACITY : 0)
  }

  setLayerOpacity(name, value) {
    if (!this.layers[name]) return
    this.layers[name].opacity = value
    this.refresh()
  }

  setPlanes(kind) {
    if (!this.nv) return
    this.nv.setSliceType(kind)
    if (kind === ALL_PLANES) this.nv.setCustomLayout(LAYOUT)
    else this.nv.clearCustomLayout()
  }

  move(x, y, z) {
    if (this.nv?.volumes.length) this.nv.moveCrosshairInVox(x, y, z)
  }

  // A place in millimetres, as the header of the scan has them.
  goTo(mm) {
    if (!this.nv?.volumes.length) return
    // true: by the full affine. Without it NiiVue takes an oblique scan for a straight one.
    this.nv.scene.crosshairPos = this.nv.mm2frac(mm, 0, true)
    this.nv.drawScene()
    this.nv.createOnLocationChange()
  }

  goToPeak() {
    const { map } = this.layers
    if (map) {
      const at = indexOfLargest(map.img)
      const [, nx, ny] = map.hdr.dims
      const voxel = [at % nx, Math.floor(at / nx) % ny, Math.floor(at / (nx * ny)), 1]
      const mm = map.hdr.affine.slice(0, 3).map((row) => row.reduce((s, a, k) => s + a * voxel[k], 0))
      this.goTo(mm)
    } else {
      this.nv.scene.crosshairPos = [0.5, 0.5, 0.5]
      this.nv.drawScene()
      this.nv.createOnLocationChange()
    }
  }

  tellPlace(place) {
    const names = Object.keys(this.layers)
    const values = Object.fromEntries(names.map((name, k) => [name, place.values[k]?.value]))
    this.onPlace(Array.from(place.mm).slice(0, 3), values)
  }
}

const valueAt = (volume, k) => volume.img[k] * (volume.hdr.scl_slope || 1) + volume.hdr.scl_inter

function indexOfLargest(values) {
  let best = 0
  for (let k = 1; k < values.length; k++) if (values[k] > values[best]) best = k
  return best
}

// The map must stay visible inside the mask, so only voxels with a neighbour outside are left.
function keepOutline(mask) {
  const [, nx, ny, nz] = mask.hdr.dims
  const whole = mask.img.slice()
  const steps = [1, nx, nx * ny]
  const sizes = [nx, ny, nz]
  for (let k = 0; k < whole.length; k++) {
    if (!(whole[k] > 0)) continue
    const at = [k % nx, Math.floor(k / nx) % ny, Math.floor(k / (nx * ny))]
    const within = at.every(
      (a, d) => a > 0 && a < sizes[d] - 1 && whole[k - steps[d]] > 0 && whole[k + steps[d]] > 0,
    )
    if (within) mask.img[k] = 0
  }
}

// NiiVue looks at the name; the server gives none, so the first bytes decide.
function nameOf(buffer) {
  const [first, second] = new Uint8Array(buffer, 0, 2)
  return first === 0x1f && second === 0x8b ? "volume.nii.gz" : "volume.nii"
}
