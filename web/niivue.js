// What the page uses of NiiVue; the bundler leaves out what nothing here reaches.
export { NVImage, Niivue } from "@niivue/niivue"
