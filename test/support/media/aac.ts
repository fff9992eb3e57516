import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { adtsFrames, buildAudioSpecificConfig } from '../../../src/codecs/aac.ts';
import type { AudioTrack } from '../../../src/core/track.ts';
import type { Media } from '../webrtc/webrtc-media.ts';

const SAMPLERATE = 48_000;

/** A tone in frames of AAC LC. @param track what differs from track 1, `audio` */
export async function aac(hertz: number, track: Partial<AudioTrack> = {}, seconds = 2): Promise<Media<AudioTrack>> {
  const { samplerate = SAMPLERATE } = track;
  const { stdout } = await promisify(execFile)(
    'ffmpeg',
    [
      '-nostdin',
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      `sine=frequency=${hertz}:sample_rate=${samplerate}`,
      '-t',
      `${seconds}`,
      '-ac',
      '2',
      '-c:a',
      'aac',
      '-b:a',
      '96k',
      '-f',
      'adts',
      'pipe:1',
    ],
    { encoding: 'buffer', maxBuffer: 16 * 1024 * 1024 },
  );
  return {
    track: {
      id: 1,
      name: 'audio',
      type: 'audio',
      codec: 'AAC',
      timebase: { num: 1, den: samplerate },
      bypass: true,
      config: buildAudioSpecificConfig({ samplerate, channels: 2 }),
      samplerate,
      channels: 2,
      bitrate: 96_000,
      ...track,
    },
    frames: [...adtsFrames(stdout)].map(({ payload }) => ({ data: payload, key: true, duration: 1024, delay: 0 })),
  };
}
