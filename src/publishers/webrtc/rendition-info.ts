import type { OutputStream } from '../../core/output-stream.ts';
import { trackInfo } from '../../stats/track-info.ts';
import type { PlayableRendition, Selection } from './selection.ts';

/** The playlist notification that a player chooses renditions from (docs/compatibility.md#webrtc-signalling). */
export function playlistMessage(stream: OutputStream, { playlist, renditions }: Selection, auto: boolean): object {
  return {
    name: playlist.name ?? '',
    file_name: playlist.fileName ?? '',
    auto,
    renditions: renditions.map((rendition) => renditionInfo(stream, rendition)),
  };
}

function renditionInfo(stream: OutputStream, { name, video, audio }: PlayableRendition): object {
  return {
    name,
    ...(video === undefined ? {} : { video_track: trackInfo(video, stream.measured(video.id)) }),
    ...(audio === undefined ? {} : { audio_track: trackInfo(audio, stream.measured(audio.id)) }),
  };
}
