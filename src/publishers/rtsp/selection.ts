import type { OutputStream } from '../../core/output-stream.ts';
import { isMedia, type MediaTrack, type Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { payloadFormat } from '../../protocols/rtp/payload-format.ts';
import { tracksOf } from '../srt/selection.ts';

/**
 * Tracks of an output stream that an RTSP player is offered: those of the first rendition of a playlist, or without one the first
 * video and one audio track, AAC if there is one, which all players decode.
 * @throws fileNotFound where there is no such playlist
 */
export function offeredTracks(output: OutputStream, fileName: string | undefined): MediaTrack[] {
  const sendable = output.tracks.filter(isSendable);
  if (fileName === undefined) {
    const audio = sendable.filter(({ type }) => type === 'audio');
    const video = sendable.find(({ type }) => type === 'video');
    return [video, audio.find(({ codec }) => codec === 'AAC') ?? audio[0]].filter((track) => track !== undefined);
  }
  const playlist = output.playlist(fileName);
  if (playlist === undefined) throw kilnError('fileNotFound');
  return tracksOf(sendable, playlist).filter(isMedia);
}

function isSendable(track: Track): track is MediaTrack {
  return isMedia(track) && payloadFormat(track) !== undefined;
}
