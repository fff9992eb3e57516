import type { SubtitleCue } from '../../core/subtitle-cue.ts';
import type { SubtitleTrack } from '../../core/track.ts';
import { ascii, box, fullBox, u16, u32, zeros } from './box.ts';
import { children } from './read-box.ts';

/** A cue in a sample, with a number that it has in each sample. */
export interface NumberedCue extends SubtitleCue {
  readonly source: number;
}

const EMPTY = box('vtte');
const ROLES = Buffer.from('urn:mpeg:dash:role:2011\0');

/** Entry of `stsd` for WebVTT (ISO/IEC 14496-30, 7.5), with a header that says nothing more. */
export function webVttEntry(): Buffer {
  return box('wvtt', zeros(6), u16(1), box('vttC', ascii('WEBVTT')));
}

/** Sample with the cues of its time (ISO/IEC 14496-30, 7.4), or with `vtte` where there are none. */
export function webVttSample(cues: readonly NumberedCue[]): Buffer {
  if (cues.length === 0) return EMPTY;
  return Buffer.concat(
    cues.map(({ source, settings, text }) =>
      box(
        'vttc',
        box('vsid', u32(source)),
        ...(settings === '' ? [] : [box('sttg', Buffer.from(settings))]),
        box('payl', Buffer.from(text)),
      ),
    ),
  );
}

/** Reads the cues of a sample; one without a number has 0. @throws RangeError for a damaged one */
export function readWebVttSample(sample: Buffer): NumberedCue[] {
  return children(sample).flatMap(({ type, content }) => {
    if (type !== 'vttc') return [];
    const parts = new Map(children(content).map((part) => [part.type, part.content]));
    const text = (name: string): string => parts.get(name)?.toString() ?? '';
    const number = parts.get('vsid');
    return [{ source: number?.length === 4 ? number.readUInt32BE() : 0, settings: text('sttg'), text: text('payl') }];
  });
}

/** `udta` of a subtitle track: its role (ISO/IEC 14496-12, 8.10.4; the scheme of ISO/IEC 23009-1, 5.8.5.5). */
export function roleOf({ forced }: SubtitleTrack): Buffer {
  return box('udta', fullBox('kind', 0, 0, ROLES, ascii(`${forced ? 'forced-subtitle' : 'subtitle'}\0`)));
}
