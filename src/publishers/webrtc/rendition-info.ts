import type { OutputStream } from '../../core/stream.ts';
import type { AudioTrack, VideoTrack } from '../../core/track.ts';
import type { PlayableRendition, Selection } from './selection.ts';

/** The playlist notification that a player chooses renditions from (facts/04-webrtc-signalling.md). */
export function playlistMessage(stream: OutputStream, { playlist, renditions }: Selection): object {
  return {
    name: playlist.name ?? '',
    file_name: playlist.fileName ?? '',
    auto: false,
    renditions: renditions.map((rendition) => renditionInfo(stream, rendition)),
  };
}

function renditionInfo(stream: OutputStream, { name, video, audio }: PlayableRendition): object {
  return {
    name,
    ...(video === undefined ? {} : { video_track: videoInfo(stream, video) }),
    ...(audio === undefined ? {} : { audio_track: audioInfo(stream, audio) }),
  };
}

function videoInfo(stream: OutputStream, track: VideoTrack): object {
  const { id, name, bypass, codec, width, height, timebase } = track;
  const measured = stream.measured(id);
  const bitrate = track.bitrate || (measured?.bitrateAvg ?? 0);
  const framerate = track.framerate || (measured?.framerateAvg ?? 0);
  return { id, name, type: 'Video', video: { bypass, codec, width, height, bitrate, framerate, timebase } };
}

function audioInfo(stream: OutputStream, track: AudioTrack): object {
  const { id, name, bypass, codec, samplerate, channels, timebase } = track;
  const bitrate = track.bitrate || (stream.measured(id)?.bitrateAvg ?? 0);
  return { id, name, type: 'Audio', audio: { bypass, codec, samplerate, channel: channels, bitrate, timebase } };
}
