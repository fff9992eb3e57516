import { PLAIN, type CaptionText, type Style } from './caption-text.ts';
import { basicCharacter, extendedCharacter, specialCharacter } from './cea608-characters.ts';
import { Cea608Screen } from './cea608-screen.ts';

/** Colours of attribute codes (CTA-608-E, table 51), as classes of WebVTT; white is the colour of captions. */
const COLOURS = [undefined, 'lime', 'blue', 'cyan', 'red', 'yellow', 'magenta'] as const;
const ITALICS = 7;
const COLUMNS_PER_INDENT = 4;
/** Rows of a preamble address code, by the low bits of its first byte (table 53), from 0; 0 has one row. */
const ROW_PAIRS = [10, 0, 2, 11, 13, 4, 6, 8] as const;

/** One of the two fields of CEA-608, with two channels: those of field 1 are CC1 and CC2, those of field 2 CC3 and CC4. */
export class Cea608Field {
  readonly #channels = [new Channel(), new Channel()] as const;
  /** Channel that characters belong to; undefined before a control code, and while data of another kind come (XDS). */
  #current: Channel | undefined;
  /** Control code that is ignored if it is repeated: all of them are sent twice. */
  #last = 0;

  /** Screen of a channel. @param channel 0 or 1 */
  screen(channel: number): Cea608Screen | undefined {
    return this.#channels[channel]?.screen;
  }

  /** Texts that a channel shows. */
  texts(channel: number): CaptionText[] {
    return this.screen(channel)?.texts() ?? [];
  }

  /** Whether a channel has had captions. */
  isUsed(channel: number): boolean {
    return this.#channels[channel]?.isUsed ?? false;
  }

  /** Takes the two bytes of a frame, with their parity. */
  push(first: number, second: number): void {
    const one = first & 0x7f;
    const two = second & 0x7f;
    if (one === 0 && two === 0) return;
    if (one >= 0x20) {
      this.#last = 0;
      this.#current?.write(one, two);
    } else if (one >= 0x10) this.#control(one, two);
    // extended data services (XDS), up to the next control code of captions
    else if (one > 0) this.#current = undefined;
  }

  #control(one: number, two: number): void {
    const code = (one << 8) | two;
    const isRepeated = code === this.#last;
    this.#last = isRepeated ? 0 : code;
    if (isRepeated || two < 0x20) return;
    this.#current = this.#channels[(one & 0x08) === 0 ? 0 : 1];
    // field 2 has 0x15 where field 1 has 0x14
    const control = one & 0x17;
    this.#current.control(control === 0x15 && two < 0x40 ? 0x14 : control, two);
  }
}

class Channel {
  readonly screen = new Cea608Screen();
  isUsed = false;
  /** Text mode: characters belong to a text service. */
  #isText = false;

  write(one: number, two: number): void {
    if (this.#isText) return;
    this.screen.write(basicCharacter(one));
    if (two >= 0x20) this.screen.write(basicCharacter(two));
  }

  /** @param control 0x10 to 0x17: the channel's bit is not set */
  control(control: number, two: number): void {
    if (control === 0x14 && two < 0x40) return this.#command(two);
    if (this.#isText) return;
    if (two >= 0x40) return this.#place(control, two);
    if (control === 0x11 && two < 0x30) this.screen.restyle(midRowStyle(two));
    else if (control === 0x11) this.screen.write(specialCharacter(two));
    else if (control === 0x12 || control === 0x13) this.screen.overwrite(extendedCharacter(control, two));
    else if (control === 0x17 && two > 0x20 && two < 0x24) this.screen.tab(two & 3);
  }

  /** Miscellaneous control codes (table 52). */
  #command(two: number): void {
    const { screen } = this;
    if (two === 0x2a || two === 0x2b) this.#isText = true;
    else if (two === 0x20 || (two >= 0x25 && two <= 0x27) || two === 0x29 || two === 0x2f) {
      this.#isText = false;
      this.isUsed = true;
    }
    switch (two) {
      case 0x20:
        return screen.popOn();
      case 0x25:
      case 0x26:
      case 0x27:
        return screen.rollUp(two - 0x23);
      case 0x29:
        return screen.paintOn();
      case 0x2c:
        return screen.erase();
      case 0x2e:
        return screen.eraseHidden();
      case 0x2f:
        return screen.flip();
    }
    if (this.#isText) return;
    if (two === 0x21) screen.backspace();
    else if (two === 0x24) screen.deleteToEnd();
    else if (two === 0x2d) screen.newLine();
    // flash on (FON) takes a column
    else if (two === 0x28) screen.write(' ');
  }

  /** Preamble address code (table 53). */
  #place(control: number, two: number): void {
    const isSecond = two >= 0x60;
    const pair = ROW_PAIRS[control & 7];
    if (pair === undefined || (isSecond && (control & 7) === 0)) return;
    const attribute = (two >> 1) & 7;
    const isIndent = (two & 0x10) !== 0;
    const style = isIndent ? { ...PLAIN, underline: (two & 1) !== 0 } : midRowStyle(two);
    this.screen.place(pair + (isSecond ? 1 : 0), isIndent ? attribute * COLUMNS_PER_INDENT : 0, style);
  }
}

function midRowStyle(two: number): Style {
  const attribute = (two >> 1) & 7;
  return { italics: attribute === ITALICS, underline: (two & 1) !== 0, colour: COLOURS[attribute] };
}
