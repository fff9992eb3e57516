import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buildAdtsHeader, parseAudioSpecificConfig } from '../../../src/codecs/aac.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { until } from '../../support/time/until.ts';
import { seeded } from '../codecs/vectors.ts';
import { feed, openTranscoder, orderFaults, pictureFaults } from './rig.ts';
import {
  AUDIO_FRAME,
  audioEncoding,
  audioFrames,
  lastSeconds,
  looped,
  secondsOf,
  Taken,
  videoEncoding,
  type Clip,
} from './sources.ts';

/** A tone at the beginning of each second. */
export const BEEPS = 'sin(2*PI*1000*t)*lt(mod(t,1),0.1)/2';
/** Share by which the source's audio clock is slower than its sampling rate. */
const DRIFT = 0.0005;
const LOUD = 3000;
/** Seconds of silence that let a tone be found. */
const CLEAR = 0.2;

/**
 * Encodes a source of beeps whose timestamps drift against its samples, with pieces missing and jumps ahead,
 * as fast as it can. Finds the beeps again in what was put out.
 * @returns by how many seconds the sound of each beep is away from where the timestamps put it, at the most, and what
 *   is wrong with the pictures
 */
export async function skewedClocks(source: Clip, seconds: number, seed: number, samplerate = 48_000) {
  const { input, transcoder } = openTranscoder(source);
  const video = new Taken(source.video, videoEncoding({ width: 80, height: 48 }));
  const aac = new Taken(source.audio, audioEncoding({ samplerate }));
  try {
    transcoder.setJobs([video.task, aac.task]);
    const { packets, beeps } = skewed(source, seconds, seed);
    await feed(input, packets, [video, aac], 10);
    const end = lastSeconds(source, packets) - 1;
    await until('all is out', () => video.reached > end && aac.reached > end, 60_000);
    const heard = await onsets(aac);
    const errors = beeps.filter((at) => at < end - 1).map((at) => nearest(heard, at) - at);
    const worst = errors.reduce((most, error) => (Math.abs(error) > Math.abs(most) ? error : most), 0);
    return { worst, beeps: errors.length, faults: [...pictureFaults(video, packets), ...orderFaults(aac.packets)] };
  } finally {
    transcoder.close();
  }
}

/** A source's packets on its bad clock, and when its beeps are by that clock. */
function skewed(source: Clip, seconds: number, seed: number): { packets: Packet[]; beeps: number[] } {
  const random = seeded(seed);
  const rate = source.audio.timebase.den;
  const packets: Packet[] = [];
  const beeps: number[] = [];
  let jump = 0;
  let missing = -1;
  let nextEvent = 10;
  let audioFrame = 0;
  const perRound = audioFrames(source);
  for (const packet of looped(source, Math.ceil(seconds / source.seconds))) {
    const at = secondsOf(packet);
    if (at > nextEvent) {
      if (random() < 0.5) jump += 0.1 + random() * 3;
      else missing = at + 0.05 + random();
      nextEvent = at + 5 + random() * 10;
    }
    const isAudio = packet.track === source.audio;
    // what is missing is sound alone, for pictures would have to wait for a key frame
    const gone = isAudio && at < missing;
    if (!gone) packets.push(stamped(packet, isAudio ? 1 + DRIFT : 1, jump));
    if (!isAudio) continue;
    // the first packet of the clip is the encoder's priming
    const begin = ((audioFrame++ % perRound) - 1) * AUDIO_FRAME;
    const beep = Math.ceil(begin / rate) * rate;
    // right behind a gap there need be no silence in front of it
    if (beep < Math.min(begin + AUDIO_FRAME, source.seconds * rate) && at > missing + CLEAR)
      beeps.push(((packet.pts + beep - begin) / rate) * (1 + DRIFT) + jump);
  }
  return { packets, beeps: beeps.slice(1) };
}

function stamped(packet: Packet, stretch: number, jump: number): Packet {
  const { den } = (packet.track as Clip['video']).timebase;
  const time = (ticks: number) => Math.round(ticks * stretch + jump * den);
  return { ...packet, dts: time(packet.dts), pts: time(packet.pts) };
}

/** When the tones begin in encoded sound, by its timestamps. */
async function onsets({ packets, formats }: Taken): Promise<number[]> {
  const {
    config,
    timebase: { den },
  } = formats[0] as NonNullable<(typeof formats)[0]>;
  const shape = parseAudioSpecificConfig(config as Buffer);
  const child = spawn('ffmpeg', ['-v', 'error', '-f', 'aac', '-i', 'pipe:0', '-ac', '1', '-f', 's16le', 'pipe:1'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const pcm: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => pcm.push(chunk));
  for (const { data } of packets) {
    child.stdin.write(buildAdtsHeader(shape, data.length));
    child.stdin.write(data);
  }
  child.stdin.end();
  await once(child, 'close');
  const samples = Buffer.concat(pcm);
  const found: number[] = [];
  let quiet = 0;
  for (let i = 0; i * 2 < samples.length; i++) {
    if (Math.abs(samples.readInt16LE(i * 2)) < LOUD) {
      quiet++;
      continue;
    }
    const packet = packets[Math.floor(i / AUDIO_FRAME)];
    if (quiet > (den * CLEAR) / 2 && packet !== undefined) found.push((packet.pts + (i % AUDIO_FRAME)) / den);
    quiet = 0;
  }
  return found;
}

function nearest(times: readonly number[], at: number): number {
  return times.reduce((best, time) => (Math.abs(time - at) < Math.abs(best - at) ? time : best), Infinity);
}
