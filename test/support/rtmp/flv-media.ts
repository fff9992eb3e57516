import { box, samples, vector } from '../../unit/codecs/vectors.ts';
import { buildAudioTag, buildVideoTag } from './flv-build.ts';

/** Real coded data as bodies of RTMP messages. */
export interface FlvMedia {
  readonly config: Buffer;
  readonly frames: readonly Buffer[];
}

/** H.264 at 25 frames a second, 66x50: a key frame, another frame, a key frame. */
export function h264(name = 'h264-baseline.mp4'): FlvMedia {
  const mp4 = vector(name);
  return {
    config: buildVideoTag({ codec: 'H264', packet: 'config', key: true, data: box(mp4, 'avcC') }),
    frames: samples(mp4).map((data, i) => buildVideoTag({ codec: 'H264', packet: 'frame', key: i % 2 === 0, data })),
  };
}

/** AAC LC at 48 kHz in stereo; the frames are not sound, and nothing here decodes them. */
export function aac(frames = 10): FlvMedia {
  return {
    config: buildAudioTag({ codec: 'AAC', packet: 'config', data: Buffer.of(0x11, 0x90) }),
    frames: Array.from({ length: frames }, (_, i) =>
      buildAudioTag({
        codec: 'AAC',
        packet: 'frame',
        data: Buffer.alloc(100 + i, i),
      }),
    ),
  };
}
