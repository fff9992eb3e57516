import { isBlank, placed, PLAIN, rowText, type CaptionText, type Cell, type Style } from './caption-text.ts';

/** Rows and columns of the grid that windows are anchored to; wide pictures have 210 columns (CTA-708-E, section 8.4). */
const GRID = { rows: 75, columns: 210 };

export interface WindowShape {
  readonly isVisible: boolean;
  /** Whether the place is in per cent, not in cells of the grid. */
  readonly isRelative: boolean;
  readonly vertical: number;
  readonly horizontal: number;
  /** Point of the window that is at its place: 0 to 8, by rows from the upper left. */
  readonly anchor: number;
  readonly rows: number;
  readonly columns: number;
}

/** Window of a CEA-708 service, whose text runs from left to right and scrolls up (CTA-708-E, section 8). */
export class Cea708Window {
  isVisible: boolean;
  #shape: WindowShape;
  #cells: (Cell | undefined)[][];
  #row = 0;
  #column = 0;
  #style: Style = PLAIN;

  constructor(shape: WindowShape) {
    this.#shape = shape;
    this.isVisible = shape.isVisible;
    this.#cells = rowsOf(shape);
  }

  /** Defines it anew: its text stays, as far as there is room. */
  define(shape: WindowShape): void {
    this.#shape = shape;
    this.isVisible = shape.isVisible;
    this.#cells = rowsOf(shape).map((row, index) => this.#cells[index] ?? row);
    for (const row of this.#cells) row.length = Math.min(row.length, shape.columns);
    this.moveTo(this.#row, this.#column);
  }

  clear(): void {
    this.#cells = rowsOf(this.#shape);
  }

  /** Clears it, with the pen at its begin (FF). */
  restart(): void {
    this.clear();
    this.moveTo(0, 0);
  }

  moveTo(row: number, column: number): void {
    this.#row = Math.min(row, this.#shape.rows - 1);
    this.#column = Math.min(column, this.#shape.columns - 1);
  }

  set style(style: Style) {
    this.#style = style;
  }

  /** Writes where the pen is; what the row has no room for replaces its last character. */
  write(character: string): void {
    const row = this.#cells[this.#row];
    if (row === undefined) return;
    row[this.#column] = { character, style: this.#style };
    this.#column = Math.min(this.#shape.columns - 1, this.#column + 1);
  }

  backspace(): void {
    const row = this.#cells[this.#row];
    if (row === undefined || this.#column === 0) return;
    this.#column--;
    row[this.#column] = undefined;
  }

  /** Goes to the next row (CR): the first one leaves where there is no other. */
  newLine(): void {
    this.#column = 0;
    if (this.#row < this.#shape.rows - 1) {
      this.#row++;
      return;
    }
    this.#cells.shift();
    this.#cells.push([]);
  }

  /** Erases the row, with the pen at its begin (HCR). */
  restartRow(): void {
    this.#cells[this.#row] = [];
    this.#column = 0;
  }

  /** Its text; undefined where it shows none. */
  text(): CaptionText | undefined {
    const rows = this.#cells.filter((row) => !isBlank(row));
    return rows.length === 0 ? undefined : { settings: this.#settings, text: rows.map(rowText).join('\n') };
  }

  get #settings(): string {
    const { isRelative, vertical, horizontal, anchor } = this.#shape;
    const down = vertical / (isRelative ? 100 : GRID.rows);
    const right = horizontal / (isRelative ? 100 : GRID.columns);
    const line = ['start', 'center', 'end'][Math.floor(anchor / 3)] ?? 'end';
    const [position = 'center', align = 'center'] =
      [
        ['line-left', 'start'],
        ['center', 'center'],
        ['line-right', 'end'],
      ][anchor % 3] ?? [];
    return `line:${placed(down)}%,${line} position:${placed(right)}%,${position} align:${align}`;
  }
}

function rowsOf({ rows }: WindowShape): Cell[][] {
  return Array.from({ length: rows }, () => []);
}
