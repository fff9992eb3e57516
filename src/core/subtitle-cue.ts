/** Text that is shown for a time: what a packet of a subtitle track has, whose time and duration say when. */
export interface SubtitleCue {
  /** WebVTT cue settings, such as `line:80%`; empty for none (WebVTT, section 3.5). */
  readonly settings: string;
  /** WebVTT cue text of one or more lines, none of them blank. */
  readonly text: string;
}

/** Writes a cue as the data of a packet: its settings in the first line, and its text in those that follow. */
export function writeCue({ settings, text }: SubtitleCue): Buffer {
  return Buffer.from(`${settings}\n${text}`);
}

/** Reads what `writeCue` wrote; undefined for other data, and for what would end the cue in a WebVTT file. */
export function readCue(data: Buffer): SubtitleCue | undefined {
  const content = data.toString();
  const end = content.indexOf('\n');
  if (end < 0) return undefined;
  const cue = { settings: content.slice(0, end), text: content.slice(end + 1) };
  return isCueText(cue.text) && !/[\r\n]|-->/.test(cue.settings) ? cue : undefined;
}

/** Whether a text can be that of one cue: no line is blank, and none has an arrow (WebVTT, section 4.1). */
export function isCueText(text: string): boolean {
  return !text.includes('-->') && !text.includes('\0') && text.split(/\r\n|\r|\n/).every((line) => line.trim() !== '');
}
