import Type from 'typebox';
import type { TimedCue } from '../../core/input-stream.ts';
import { isCueText } from '../../core/subtitle-cue.ts';
import type { SubtitleTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { isDocument, type Document } from '../../management/documents.ts';
import { objectOf } from '../envelope.ts';

/** Body in the description of the API; `readSubtitles` checks it, with texts of its own. */
export const StreamSubtitles = Type.Object({
  format: Type.String({ description: 'webvtt' }),
  data: Type.Array(
    Type.Object({
      label: Type.String({ description: 'label of a rendition of Subtitles' }),
      subtitles: Type.Array(
        Type.Object({
          startOffset: Type.Optional(
            Type.Integer({
              description: 'milliseconds from now, or from the end of the one before in the list; 0 by default',
            }),
          ),
          durationMs: Type.Optional(Type.Integer({ description: '1000 by default' })),
          settings: Type.Optional(Type.String({ description: 'WebVTT cue settings, such as line:80%' })),
          text: Type.String({ description: 'WebVTT cue text, without blank lines and arrows' }),
        }),
      ),
    }),
  ),
});

const DEFAULT_DURATION_MS = 1000;
/** Limits of one body. */
const MAX_CUES = 100;
const MAX_TEXT_BYTES = 64 * 1024;
/** Longest delay and duration, in milliseconds. */
const MAX_MS = 24 * 3600 * 1000;
/** WebVTT, section 3.5, each setting once. */
const SETTINGS: Readonly<Record<string, RegExp>> = {
  vertical: /^(?:rl|lr)$/,
  line: /^(?:-?\d{1,4}|\d{1,3}(?:\.\d+)?%)(?:,(?:start|center|end))?$/,
  position: /^\d{1,3}(?:\.\d+)?%(?:,(?:line-left|center|line-right))?$/,
  size: /^\d{1,3}(?:\.\d+)?%$/,
  align: /^(?:start|center|end|left|right)$/,
};

/**
 * Checks the body of `:sendSubtitles`, with the texts of OvenMediaEngine where it has one.
 * @param trackOf finds the track of a label
 * @returns the cues of all labels
 * @throws bodyNotObject, subtitlesInvalid
 */
export function readSubtitles(body: unknown, trackOf: (label: string) => SubtitleTrack | undefined): TimedCue[] {
  const { format, data } = objectOf(body);
  if (typeof format !== 'string' || !Array.isArray(data))
    throw kilnError('subtitlesInvalid', 'format(string) and data(array) are required');
  if (format.toLowerCase() !== 'webvtt') throw kilnError('subtitlesInvalid', `format is not supported: [${format}]`);
  const cues = data.flatMap((item) => {
    const { label, subtitles } = fieldsOf(item);
    if (typeof label !== 'string' || !Array.isArray(subtitles))
      throw kilnError('subtitlesInvalid', 'label(string) and subtitles(array) are required');
    const track = trackOf(label);
    if (track === undefined) throw kilnError('subtitlesInvalid', `label is not found: [${label}]`);
    return cuesOf(track, subtitles);
  });
  if (cues.length === 0 || cues.length > MAX_CUES)
    throw kilnError('subtitlesInvalid', `one to ${MAX_CUES} subtitles are possible`);
  const bytes = cues.reduce((sum, { cue }) => sum + Buffer.byteLength(cue.text), 0);
  if (bytes > MAX_TEXT_BYTES) throw kilnError('subtitlesInvalid', `text is longer than ${MAX_TEXT_BYTES} bytes`);
  return cues;
}

/** Cues of one track: each begins when the one before has ended. */
function cuesOf(track: SubtitleTrack, subtitles: readonly unknown[]): TimedCue[] {
  let end = 0;
  return subtitles.map((subtitle) => {
    const { text, settings = '', startOffset = 0, durationMs = DEFAULT_DURATION_MS } = fieldsOf(subtitle);
    if (typeof text !== 'string') throw kilnError('subtitlesInvalid', 'text(string) is required in subtitles');
    if (!isCueText(text)) throw kilnError('subtitlesInvalid', 'text has a blank line, or -->');
    const startMs = end + milliseconds('startOffset', startOffset, 0);
    const duration = milliseconds('durationMs', durationMs, 1);
    end = startMs + duration;
    if (end > MAX_MS) throw kilnError('subtitlesInvalid', 'subtitles end within a day');
    return { track, startMs, durationMs: duration, cue: { settings: settingsOf(settings), text: lines(text) } };
  });
}

function fieldsOf(value: unknown): Document {
  return isDocument(value) ? value : {};
}

function milliseconds(name: string, value: unknown, least: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > MAX_MS)
    throw kilnError('subtitlesInvalid', `${name} must be an integer from ${least} to ${MAX_MS}`);
  return value as number;
}

function settingsOf(value: unknown): string {
  if (typeof value !== 'string') throw kilnError('subtitlesInvalid', 'settings must be string');
  const settings = value.split(/[ \t]+/).filter((one) => one !== '');
  const names = new Set<string>();
  for (const setting of settings) {
    const [name = '', form = ''] = setting.split(/:(.*)/s);
    if (!Object.hasOwn(SETTINGS, name) || SETTINGS[name]?.test(form) !== true || names.has(name))
      throw kilnError('subtitlesInvalid', `settings are not supported: [${setting}]`);
    names.add(name);
  }
  return settings.join(' ');
}

function lines(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}
