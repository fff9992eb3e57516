import { targetOf } from '../../../packaging/listed-duration.ts';
import { GAP_VERSION } from '../../../packaging/listed-version.ts';
import { TextPiece } from '../answer/text.ts';
import type { PastList } from './past-list.ts';

export interface IFrameListOptions {
  /** Seconds of the longest segment in any playlist of the stream. */
  readonly longest: number;
  /** No segment leaves the playlist (`EXT-X-PLAYLIST-TYPE:EVENT`). */
  readonly event: boolean;
  /** No more segments follow. */
  readonly ended: boolean;
}

/** Builds the playlist of the first frames of all segments, with which players show where they rewind to (RFC 8216 section 4.3.3.6). */
export function iFrameList(past: PastList, { longest, event, ended }: IFrameListOptions): TextPiece[] {
  const sequence = past.empty ? 0 : past.discontinuitySequence(past.first);
  let head = `#EXTM3U\n#EXT-X-VERSION:${GAP_VERSION}\n#EXT-X-TARGETDURATION:${Math.max(1, targetOf(longest))}\n`;
  if (event) head += '#EXT-X-PLAYLIST-TYPE:EVENT\n';
  head += `#EXT-X-MEDIA-SEQUENCE:${past.first}\n`;
  if (sequence > 0) head += `#EXT-X-DISCONTINUITY-SEQUENCE:${sequence}\n`;
  head += '#EXT-X-I-FRAMES-ONLY\n';
  const end = ended ? [new TextPiece(Buffer.from('#EXT-X-ENDLIST\n'))] : [];
  return [new TextPiece(Buffer.from(head)), ...past.iFrames(), ...end];
}
