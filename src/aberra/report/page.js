"use strict";
(() => {
  // Tables: a button in each heading that names an order; a second press turns it around.
  const valueOf = (row, column, kind) => {
    const cell = row.cells[column];
    return kind === "number" ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
  };
  const sortBy = (table, heading, column) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    const kind = heading.dataset.sort;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const [x, y] = [valueOf(a, column, kind), valueOf(b, column, kind)];
      return (kind === "number" ? x - y : x.localeCompare(y, undefined, { numeric: true })) * (down ? -1 : 1);
    });
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (!heading.dataset.sort) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sortBy(table, heading, column));
      heading.replaceChildren(button);
    });
  }

  // Scans: the picture of all slices is unfolded into voxels, and cut along three planes.
  const SCALE = 3; // screen pixels a voxel
  const pixelsOf = (image) => {
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth;
    canvas.height = image.naturalHeight;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, canvas.width, canvas.height);
  };
  const add = (parent, name, properties = {}) => {
    const element = Object.assign(document.createElement(name), properties);
    parent.append(element);
    return element;
  };
  const slider = (parent, text, max, value) => {
    const label = add(parent, "label", { textContent: text + " " });
    const output = add(label, "output");
    const input = add(label, "input", { type: "range", min: 0, max, value });
    return { input, output };
  };
  // For each plane: the axis it is cut along, the axes across and down the screen (down is
  // always reversed: up and front are on top), whether across is reversed, letters at the sides.
  const PLANES = [
    { cut: 2, across: 0, down: 1, flip: false, letters: "LR", text: "height", ways: ["up", "down"] },
    { cut: 1, across: 0, down: 2, flip: false, letters: "LR", text: "front to back", ways: ["front", "back"] },
    { cut: 0, across: 1, down: 2, flip: true, letters: "AP", text: "left to right", ways: ["right", "left"] },
  ];
  const unfold = (figure, heat) => {
    const list = (key) => figure.dataset[key].split(",").map(Number);
    const [shape, origin, at] = [list("shape"), list("origin"), list("centre")];
    const [columns, spacing] = [Number(figure.dataset.columns), Number(figure.dataset.spacing)];
    const mosaic = pixelsOf(figure.querySelector(".mosaic"));
    const voxel = (p) => {
      const x = (p[2] % columns) * shape[0] + p[0];
      const y = Math.floor(p[2] / columns) * shape[1] + shape[1] - 1 - p[1];
      return 4 * (y * mosaic.width + x);
    };
    const planes = add(figure, "div", { className: "planes" });
    const controls = add(figure, "div", { className: "controls" });
    const opacity = slider(controls, "strength of the map", 100, 70);
    const outline = add(add(controls, "label", { textContent: "outline what is flagged " }), "input", { type: "checkbox", checked: true });
    if (!mosaic.data.some((value, k) => k % 4 === 2 && value > 0)) outline.parentNode.remove();

    const views = PLANES.map((plane) => {
      const box = add(planes, "div");
      const [width, height] = [shape[plane.across], shape[plane.down]];
      const canvas = add(box, "canvas", { width: width * SCALE, height: height * SCALE });
      canvas.setAttribute("role", "img");
      const { input, output } = slider(box, plane.text, shape[plane.cut] - 1, at[plane.cut]);
      const small = document.createElement("canvas");
      [small.width, small.height] = [width, height];
      input.addEventListener("input", () => { at[plane.cut] = Number(input.value); draw(); });
      canvas.addEventListener("click", (event) => {
        const column = Math.min(width - 1, Math.floor((event.offsetX / canvas.clientWidth) * width));
        const row = Math.min(height - 1, Math.floor((event.offsetY / canvas.clientHeight) * height));
        at[plane.across] = plane.flip ? width - 1 - column : column;
        at[plane.down] = height - 1 - row;
        draw();
      });
      return { plane, canvas, small, input, output, width, height };
    });

    const indexAt = (view, column, row) => {
      const p = [...at];
      p[view.plane.across] = view.plane.flip ? view.width - 1 - column : column;
      p[view.plane.down] = view.height - 1 - row;
      return voxel(p);
    };
    const drawPlane = (view) => {
      const context = view.small.getContext("2d");
      const pixels = context.createImageData(view.width, view.height);
      const strength = Number(opacity.input.value) / 100;
      const flagged = (column, row) =>
        column >= 0 && row >= 0 && column < view.width && row < view.height && mosaic.data[indexAt(view, column, row) + 2] > 0;
      for (let row = 0; row < view.height; row += 1) {
        for (let column = 0; column < view.width; column += 1) {
          const from = indexAt(view, column, row);
          const to = 4 * (row * view.width + column);
          const [grey, level] = [mosaic.data[from], mosaic.data[from + 1]];
          const alpha = strength * Math.min(1, level / 128);
          const edge = outline.checked && flagged(column, row) &&
            !(flagged(column - 1, row) && flagged(column + 1, row) && flagged(column, row - 1) && flagged(column, row + 1));
          for (let c = 0; c < 3; c += 1) {
            const mixed = (1 - alpha) * grey + alpha * heat.data[4 * level + c];
            pixels.data[to + c] = edge ? [60, 220, 255][c] : mixed;
          }
          pixels.data[to + 3] = 255;
        }
      }
      context.putImageData(pixels, 0, 0);
      decorate(view);
    };
    const decorate = (view) => {
      const { plane, canvas } = view;
      const context = canvas.getContext("2d");
      context.drawImage(view.small, 0, 0, canvas.width, canvas.height);
      const x = (plane.flip ? view.width - 1 - at[plane.across] : at[plane.across]) + 0.5;
      const y = view.height - 0.5 - at[plane.down];
      context.fillStyle = "rgba(255, 255, 255, 0.45)";
      context.fillRect(Math.round(x * SCALE), 0, 1, canvas.height);
      context.fillRect(0, Math.round(y * SCALE), canvas.width, 1);
      context.fillStyle = "#fff";
      context.font = "600 14px system-ui, sans-serif";
      context.fillText(plane.letters[0], 5, 18);
      context.fillText(plane.letters[1], canvas.width - 15, 18);
      const mm = Math.round(origin[plane.cut] + spacing * at[plane.cut]);
      const words = `${Math.abs(mm)} mm ${mm < 0 ? plane.ways[1] : plane.ways[0]}`;
      view.input.value = at[plane.cut];
      view.input.setAttribute("aria-valuetext", words);
      view.output.textContent = words;
      canvas.setAttribute("aria-label", `${plane.text}: slice at ${words}`);
    };
    const draw = () => {
      opacity.output.textContent = `${opacity.input.value} %`;
      views.forEach(drawPlane);
    };
    opacity.input.addEventListener("input", draw);
    outline.addEventListener("input", draw);
    draw();
  };
  const start = async () => {
    const bar = document.getElementById("heat");
    if (!bar) return;
    await bar.decode();
    const heat = pixelsOf(bar);
    for (const figure of document.querySelectorAll("figure.scan")) {
      await figure.querySelector(".mosaic").decode();
      unfold(figure, heat);
    }
  };
  start();

  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
