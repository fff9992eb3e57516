import {
  firstColumn,
  isBlank,
  placed,
  PLAIN,
  rowText,
  type CaptionText,
  type Cell,
  type Style,
} from './caption-text.ts';

const ROWS = 15;
const COLUMNS = 32;

type Memory = (Cell | undefined)[][];
type Mode = 'pop-on' | 'roll-up' | 'paint-on';

/** Screen of one CEA-608 channel: the memory that is shown, and the one that pop-on captions are written to (CTA-608-E, annex C). */
export class Cea608Screen {
  #shown = blank();
  #hidden = blank();
  /** Undefined until a caption mode is chosen: what comes before it belongs to nothing. */
  #mode: Mode | undefined;
  #depth = 0;
  #row = ROWS - 1;
  #column = 0;
  #style: Style = PLAIN;
  #revision = 0;

  /** Grows with every change of what is shown. */
  get revision(): number {
    return this.#revision;
  }

  /** Begins a pop-on caption, or goes on with one (RCL). */
  popOn(): void {
    this.#mode = 'pop-on';
  }

  /** Writes to what is shown (RDC). */
  paintOn(): void {
    this.#mode = 'paint-on';
  }

  /** Rolls up rows (RU2, RU3, RU4). @param depth number of rows */
  rollUp(depth: number): void {
    if (this.#mode !== 'roll-up') {
      this.erase();
      this.eraseHidden();
      this.#row = ROWS - 1;
    }
    this.#mode = 'roll-up';
    this.#depth = depth;
    this.#column = 0;
    this.#style = PLAIN;
  }

  /** Erases what is shown (EDM). */
  erase(): void {
    this.#shown = blank();
    this.#revision++;
  }

  /** Erases the memory that is not shown (ENM). */
  eraseHidden(): void {
    this.#hidden = blank();
  }

  /** Shows the pop-on caption (EOC). */
  flip(): void {
    this.#mode = 'pop-on';
    [this.#shown, this.#hidden] = [this.#hidden, this.#shown];
    this.#revision++;
  }

  /** Ends a row (CR), which only rows that roll up have. */
  newLine(): void {
    if (this.#mode !== 'roll-up') return;
    const top = this.#row - this.#depth + 1;
    for (let row = 0; row <= this.#row; row++) {
      const below = row < this.#row ? this.#shown[row + 1] : undefined;
      this.#shown[row] = row >= top && below !== undefined ? below : [];
    }
    this.#column = 0;
    this.#style = PLAIN;
    this.#revision++;
  }

  /** Moves the cursor by a preamble address code. @param row from 0 */
  place(row: number, column: number, style: Style): void {
    if (this.#mode === 'roll-up') this.#moveRows(row);
    this.#row = row;
    this.#column = column;
    this.#style = style;
  }

  /** Moves the cursor to the right (TO1 to TO3). */
  tab(columns: number): void {
    this.#column = Math.min(COLUMNS - 1, this.#column + columns);
  }

  /** Changes the style by a mid-row code, which is a space on the screen. */
  restyle(style: Style): void {
    // italics keep the colour
    const { colour } = style.italics ? this.#style : style;
    this.#style = { ...PLAIN, colour };
    this.write(' ');
    this.#style = { ...style, colour };
  }

  write(character: string): void {
    const memory = this.#memory;
    if (memory === undefined) return;
    (memory[this.#row] ??= [])[this.#column] = { character, style: this.#style };
    // what follows replaces the last column (CTA-608-E, C.13)
    this.#column = Math.min(COLUMNS - 1, this.#column + 1);
  }

  /** Replaces the character before the cursor, as an extended one does. */
  overwrite(character: string): void {
    this.backspace();
    this.write(character);
  }

  backspace(): void {
    const row = this.#memory?.[this.#row];
    if (row === undefined || this.#column === 0) return;
    this.#column--;
    row[this.#column] = undefined;
  }

  /** Deletes from the cursor to the end of its row (DER). */
  deleteToEnd(): void {
    const row = this.#memory?.[this.#row];
    if (row !== undefined) row.length = Math.min(row.length, this.#column);
  }

  /** Texts that are shown: one for each group of rows that follow each other. */
  texts(): CaptionText[] {
    const texts: CaptionText[] = [];
    for (let row = 0; row < ROWS; row++) {
      if (isBlank(this.#shown[row])) continue;
      const first = row;
      while (row + 1 < ROWS && !isBlank(this.#shown[row + 1])) row++;
      const rows = this.#shown.slice(first, row + 1);
      const column = Math.min(...rows.map(firstColumn));
      const settings = `line:${placed(first / ROWS)}% position:${placed(column / COLUMNS)}% align:start`;
      texts.push({ settings, text: rows.map(rowText).join('\n') });
    }
    return texts;
  }

  /** Memory that is written to. */
  get #memory(): Memory | undefined {
    if (this.#mode === undefined) return undefined;
    if (this.#mode === 'pop-on') return this.#hidden;
    this.#revision++;
    return this.#shown;
  }

  /** Moves the rows that roll up to another base row, as far as there is room. */
  #moveRows(base: number): void {
    if (base === this.#row) return;
    const rows = this.#shown.slice(Math.max(0, this.#row - this.#depth + 1), this.#row + 1);
    this.#shown = blank();
    for (const [index, row] of rows.reverse().entries()) if (index <= base) this.#shown[base - index] = row;
    this.#revision++;
  }
}

function blank(): Memory {
  return Array.from({ length: ROWS }, () => []);
}
