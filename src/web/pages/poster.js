import { element } from './common.js';

const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, HEIGHT] = [320, 180];
const BARS = 33;
const WAVES = 5;

/**
 * @param {'svg' | 'rect' | 'path'} tag
 * @param {Readonly<Record<string, string | number>>} attributes
 */
function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, `${value}`);
  return made;
}

/**
 * A sequence of numbers from 0 to 1, seeded by a name.
 * @param {string} name
 * @returns {() => number}
 */
function numbersOf(name) {
  let state = 2166136261;
  for (const unit of name) state = Math.imul(state ^ (unit.codePointAt(0) ?? 0), 16777619);
  return () => {
    state = Math.imul(state ^ (state >>> 15), 2246822507) + 0x9e3779b9;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

/**
 * A drawing for a stream without a thumbnail: waves for a video, bars where there is only audio.
 * @param {string} name
 * @param {boolean} isAudio
 */
function drawing(name, isAudio) {
  const next = numbersOf(name);
  const svg = shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'xMidYMid slice' });
  svg.setAttribute('aria-hidden', 'true');
  const parts = isAudio ? bars(next) : waves(next);
  svg.append(...parts);
  return svg;
}

/** @param {() => number} next */
function bars(next) {
  const step = WIDTH / (BARS + 7);
  return Array.from({ length: BARS }, (_, at) => {
    const swell = Math.sin(((at + 0.5) / BARS) * Math.PI);
    const height = 8 + 88 * swell * (0.25 + 0.75 * next());
    const bar = { x: (at + 3.75) * step, y: (HEIGHT - height) / 2, width: step * 0.5, height, rx: step * 0.25 };
    return shape('rect', { ...bar, class: 'wave' });
  });
}

/** @param {() => number} next */
function waves(next) {
  return Array.from({ length: WAVES }, (_, at) => {
    const level = HEIGHT * (0.3 + 0.15 * at);
    const [one, other] = [(next() - 0.5) * 90, (next() - 0.5) * 90];
    const path = `M0 ${level + one}C${WIDTH * 0.35} ${level - one} ${WIDTH * 0.6} ${level + other} ${WIDTH} ${level - other}V${HEIGHT + 2}H0Z`;
    return shape('path', { d: path, class: 'wave' });
  });
}

/** The newest thumbnail of a stream; a drawing until it has come, and where there is none. */
export class Poster {
  element = element('div', { className: 'poster' });
  /** @type {HTMLImageElement | undefined} */
  #image;
  /** @type {boolean | undefined} */
  #isAudio;
  #name;

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
    this.element.style.setProperty('--hue', `${Math.round(numbersOf(name)() * 360)}`);
  }

  /**
   * Makes the drawing.
   * @param {boolean} isAudio
   */
  draw(isAudio) {
    if (isAudio === this.#isAudio) return;
    this.#isAudio = isAudio;
    this.element.querySelector('svg')?.remove();
    this.element.prepend(drawing(this.#name, isAudio));
  }

  /**
   * Shows a thumbnail when it has loaded.
   * @param {string | undefined} url undefined where there is none
   */
  async show(url) {
    if (url === undefined) {
      this.#image?.remove();
      this.#image = undefined;
      return;
    }
    const image = element('img', { src: url, alt: '', decoding: 'async' });
    try {
      await image.decode();
    } catch {
      // the one before it is better than none
      return;
    }
    if (this.#image === undefined) this.element.append(image);
    else this.#image.replaceWith(image);
    this.#image = image;
  }
}
