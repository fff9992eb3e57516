import type { RtspMedia } from '../../protocols/rtsp/description.ts';
import { RtspIngest, type RtspIngestOptions } from './ingest.ts';
import { isTakenTrack, TRANSPORT_STREAM } from './track-source.ts';
import { TsIngest } from './ts-ingest.ts';

/** Whether a track can be part of a stream, by its description: audio, video, or a transport stream with both. */
export function isTakenMedia(media: RtspMedia): boolean {
  return isTakenTrack(media) || media.format.encoding === TRANSPORT_STREAM;
}

/**
 * Begins to convert the RTP of a session, which is pulled or published: a transport stream where there is one, else its tracks.
 * @throws RtspError when no track is supported
 */
export function openRtspIngest(options: RtspIngestOptions): RtspIngest | TsIngest {
  const isWhole = options.media.some(({ format }) => format.encoding === TRANSPORT_STREAM);
  return isWhole ? new TsIngest(options) : new RtspIngest(options);
}
