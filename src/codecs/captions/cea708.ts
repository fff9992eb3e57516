import { PLAIN, type CaptionText } from './caption-text.ts';
import { Cea708Window, type WindowShape } from './cea708-window.ts';

const WINDOWS = 8;
/** G2 where it has characters (CTA-708-E, 7.1.8); others are shown as an underscore. */
const G2: Readonly<Record<number, string>> = {
  0x20: ' ',
  0x21: '\u00a0',
  0x25: '…',
  0x2a: 'Š',
  0x2c: 'Œ',
  0x30: '█',
  0x31: '‘',
  0x32: '’',
  0x33: '“',
  0x34: '”',
  0x35: '•',
  0x39: '™',
  0x3a: 'š',
  0x3c: 'œ',
  0x3d: '℠',
  0x3f: 'Ÿ',
  0x76: '⅛',
  0x77: '⅜',
  0x78: '⅝',
  0x79: '⅞',
  0x7a: '│',
  0x7b: '┐',
  0x7c: '└',
  0x7d: '─',
  0x7e: '┘',
  0x7f: '┌',
};
const UNKNOWN = '_';
const EXTENDED = 0x10;
/** Commands from 0x80 on with arguments (CTA-708-E, 8.10.5), and how many bytes those have. */
const ARGUMENTS: Readonly<Record<number, number>> = {
  0x88: 1,
  0x89: 1,
  0x8a: 1,
  0x8b: 1,
  0x8c: 1,
  0x8d: 1,
  0x90: 2,
  0x91: 3,
  0x92: 2,
  0x97: 4,
  0x98: 6,
  0x99: 6,
  0x9a: 6,
  0x9b: 6,
  0x9c: 6,
  0x9d: 6,
  0x9e: 6,
  0x9f: 6,
};
/** Bytes of a block of variable length may not be waited for beyond this. */
const MAX_PENDING = 128;

/** Decoder of one CEA-708 service: windows with text. Pens' colours, delays and the order of windows are left out. */
export class Cea708Service {
  readonly #windows: (Cea708Window | undefined)[] = Array.from({ length: WINDOWS });
  #current: Cea708Window | undefined;
  /** A code whose bytes have not all come. */
  #pending: Buffer = Buffer.alloc(0);
  #revision = 0;

  /** Grows with all that may change what is shown. */
  get revision(): number {
    return this.#revision;
  }

  /** Takes the data of a service block. */
  push(block: Buffer): void {
    const data = this.#pending.length === 0 ? block : Buffer.concat([this.#pending, block]);
    let at = 0;
    while (at < data.length) {
      const length = lengthOf(data, at);
      if (length === undefined || at + length > data.length) break;
      this.#code(data.subarray(at, at + length));
      at += length;
    }
    this.#pending = data.length - at > MAX_PENDING ? Buffer.alloc(0) : Buffer.from(data.subarray(at));
    this.#revision++;
  }

  /** Texts of the windows that are visible. */
  texts(): CaptionText[] {
    return this.#windows.flatMap((window) => (window?.isVisible ? (window.text() ?? []) : []));
  }

  #code(code: Buffer): void {
    const [first = 0] = code;
    if (first === EXTENDED) return this.#extended(code[1] ?? 0);
    if (first >= 0x80 && first < 0xa0) return this.#command(first, code.subarray(1));
    if (first === 0x7f) this.#current?.write('♪');
    else if (first >= 0x20) this.#current?.write(String.fromCharCode(first));
    else if (first === 0x08) this.#current?.backspace();
    else if (first === 0x0c) this.#current?.restart();
    else if (first === 0x0d) this.#current?.newLine();
    else if (first === 0x0e) this.#current?.restartRow();
    // P16: a character of two bytes
    else if (first === 0x18) this.#current?.write(UNKNOWN);
  }

  #extended(second: number): void {
    if (second >= 0x20 && second < 0x80) this.#current?.write(G2[second] ?? UNKNOWN);
    else if (second === 0xa0) this.#current?.write('[CC]');
    else if (second > 0xa0) this.#current?.write(UNKNOWN);
  }

  #command(command: number, bytes: Buffer): void {
    const [one = 0, two = 0] = bytes;
    if (command < 0x88) this.#current = this.#windows[command - 0x80];
    else if (command >= 0x98) this.#define(command - 0x98, bytes);
    switch (command) {
      case 0x88:
        return this.#each(one, (window) => window.clear());
      case 0x89:
        return this.#each(one, (window) => (window.isVisible = true));
      case 0x8a:
        return this.#each(one, (window) => (window.isVisible = false));
      case 0x8b:
        return this.#each(one, (window) => (window.isVisible = !window.isVisible));
      case 0x8c:
        return this.#each(one, (window, id) => this.#delete(window, id));
      case 0x8f:
        return this.#each(0xff, (window, id) => this.#delete(window, id));
      case 0x90:
        if (this.#current !== undefined)
          this.#current.style = { italics: (two & 0x80) !== 0, underline: (two & 0x40) !== 0 };
        return;
      case 0x92:
        return this.#current?.moveTo(one & 0x0f, two & 0x3f);
    }
  }

  /** @param map a bit for each window */
  #each(map: number, act: (window: Cea708Window, id: number) => void): void {
    for (const [id, window] of this.#windows.entries())
      if (window !== undefined && (map & (1 << id)) !== 0) act(window, id);
  }

  #delete(window: Cea708Window, id: number): void {
    this.#windows[id] = undefined;
    if (this.#current === window) this.#current = undefined;
  }

  #define(id: number, bytes: Buffer): void {
    const [flags = 0, vertical = 0, horizontal = 0, anchor = 0, columns = 0] = bytes;
    const shape: WindowShape = {
      isVisible: (flags & 0x20) !== 0,
      isRelative: (vertical & 0x80) !== 0,
      vertical: vertical & 0x7f,
      horizontal,
      anchor: anchor >> 4,
      rows: (anchor & 0x0f) + 1,
      columns: (columns & 0x3f) + 1,
    };
    const known = this.#windows[id];
    const window = known ?? new Cea708Window(shape);
    if (known !== undefined) known.define(shape);
    else window.style = PLAIN;
    this.#windows[id] = window;
    this.#current = window;
  }
}

/** Bytes of the code that begins somewhere; undefined where more are needed to tell. */
function lengthOf(data: Buffer, at: number): number | undefined {
  const first = data[at] as number;
  if (first === EXTENDED) return extendedLength(data[at + 1], data[at + 2]);
  if (first >= 0x20) return 1 + (ARGUMENTS[first] ?? 0);
  return first < EXTENDED ? 1 : first < 0x18 ? 2 : 3;
}

/** Length of a code of C2, C3, G2 or G3, with EXT1 (CTA-708-E, 7.1.6 and 7.1.7). */
function extendedLength(second: number | undefined, third: number | undefined): number | undefined {
  if (second === undefined) return undefined;
  if (second < 0x20) return 2 + (second >> 3);
  if (second < 0x80 || second >= 0xa0) return 2;
  if (second < 0x90) return second < 0x88 ? 6 : 7;
  return third === undefined ? undefined : 3 + (third & 0x3f);
}
