/** A character of captions, and how it looks. */
export interface Cell {
  readonly character: string;
  readonly style: Style;
}

export interface Style {
  readonly italics: boolean;
  readonly underline: boolean;
  /** Class of WebVTT with that colour (WebVTT, section 5.2); undefined for white. */
  readonly colour?: string | undefined;
}

/** Text that is shown at a place: settings and text of a WebVTT cue. */
export interface CaptionText {
  readonly settings: string;
  readonly text: string;
}

export const PLAIN: Style = Object.freeze({ italics: false, underline: false });

/** Columns of a row; a gap where nothing was written. */
type Row = readonly (Cell | undefined)[];

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Text of a WebVTT cue that shows the characters as they are (WebVTT, section 4.2.2). */
export function cueText(text: string): string {
  return text.replaceAll(/[&<>]/g, (sign) => ESCAPES[sign] ?? sign);
}

/** Whether a row shows nothing. */
export function isBlank(row: Row | undefined): boolean {
  return row === undefined || row.every((cell) => cell === undefined || cell.character.trim() === '');
}

/** Writes a row as text of a WebVTT cue (WebVTT, section 4.2.2), without what surrounds its first and last character. */
export function rowText(row: Row): string {
  const first = row.findIndex(isShown);
  const last = row.findLastIndex(isShown);
  let text = '';
  let open = PLAIN;
  for (let column = Math.max(0, first); column <= last; column++) {
    const { character, style } = row[column] ?? { character: ' ', style: open };
    if (!isSameStyle(style, open)) {
      text += closed(open) + opened(style);
      open = style;
    }
    text += cueText(character);
  }
  return text + closed(open);
}

/** First column that shows something; 0 in a blank row. */
export function firstColumn(row: Row): number {
  return Math.max(0, row.findIndex(isShown));
}

/** Per cent of a place in a grid inside the middle 80 % of the picture (CEA-608's safe caption area), with up to two digits after the point. */
export function placed(share: number): string {
  return String(Number((10 + Math.min(1, Math.max(0, share)) * 80).toFixed(2)));
}

function isShown(cell: Cell | undefined): boolean {
  return cell !== undefined && cell.character.trim() !== '';
}

function isSameStyle(one: Style, other: Style): boolean {
  return one.italics === other.italics && one.underline === other.underline && one.colour === other.colour;
}

function opened({ italics, underline, colour }: Style): string {
  return `${colour === undefined ? '' : `<c.${colour}>`}${italics ? '<i>' : ''}${underline ? '<u>' : ''}`;
}

function closed({ italics, underline, colour }: Style): string {
  return `${underline ? '</u>' : ''}${italics ? '</i>' : ''}${colour === undefined ? '' : '</c>'}`;
}
