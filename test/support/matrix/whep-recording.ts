import { buildAvcConfig } from '../../../src/codecs/h264-config.ts';
import { canonicalize, isKeyNal, isParameterSet, NAL, nalType } from '../../../src/codecs/h264.ts';
import { joinNals } from '../../../src/codecs/nal.ts';
import type { AudioTrack, VideoTrack } from '../../../src/core/track.ts';
import { depacketizeH264, depacketizeVp8, type Rtp, type SentAt } from '../webrtc/rtp.ts';
import type { Frame, ViewerPeer } from '../webrtc/viewer-peer.ts';
import { HEIGHT, WIDTH } from './clip.ts';
import { nutFile, type Coded } from './nut-file.ts';

const VIDEO: VideoTrack = {
  id: 0,
  name: 'video',
  type: 'video',
  codec: 'VP8',
  timebase: { num: 1, den: 90_000 },
  bypass: true,
  width: WIDTH,
  height: HEIGHT,
  bitrate: 0,
  framerate: 25,
  keyFrameInterval: 0,
};
const AUDIO: AudioTrack = {
  id: 1,
  name: 'audio',
  type: 'audio',
  codec: 'OPUS',
  timebase: { num: 1, den: 48_000 },
  bypass: true,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};

/**
 * What a WebRTC viewer has received, from the first key frame on, put on one clock by the sender's reports.
 * @param lossySound nobody asks again for sound that got lost
 * @throws Error when anything else is not there
 */
export function recordingOf(viewer: ViewerPeer, codec: 'H264' | 'VP8', lossySound = false): Buffer {
  const sentAt = viewer.sentAt();
  if (sentAt === undefined) throw new Error('no sender reports');
  const { video, audio } = sentAt;
  const sounds = lossySound ? inOrder(viewer.packets.audio) : whole(viewer.packets.audio);
  const pictures = framesOf(whole(viewer.packets.video));
  const { track, frames } = codec === 'H264' ? h264(pictures) : vp8(pictures);
  const start = Math.min(...[video, audio].map(({ seconds }) => seconds)) - SECONDS_BEFORE;
  return nutFile([
    { track, frames: timed(frames, video, start, 90_000) },
    {
      track: AUDIO,
      frames: timed(
        sounds.map(({ payload, timestamp }) => ({ data: payload, key: true, timestamp })),
        audio,
        start,
        48_000,
      ),
    },
  ]);
}

/** Nothing received is older than that before the last report. */
const SECONDS_BEFORE = 600;

interface Timed {
  readonly data: Buffer;
  readonly key: boolean;
  readonly timestamp: number;
}

function timed(frames: readonly Timed[], { seconds, rtpTime }: SentAt, start: number, rate: number): Coded[] {
  return frames.map(({ data, key, timestamp }) => {
    const time = Math.round((seconds - start) * rate) + ((timestamp - rtpTime) | 0);
    return { data, key, pts: time, dts: time };
  });
}

/** Whether nothing is missing of what was sent since the packet that came first. */
export function isWhole(packets: readonly Rtp[]): boolean {
  return firstBehindGap(inOrder(packets)) === undefined;
}

/** @throws Error when a packet is not there */
function whole(packets: readonly Rtp[]): readonly Rtp[] {
  const ordered = inOrder(packets);
  const gap = firstBehindGap(ordered);
  if (gap !== undefined) throw new Error(`packet ${gap.sequence} comes behind one that is not there`);
  return ordered;
}

function firstBehindGap(ordered: readonly Rtp[]): Rtp | undefined {
  return ordered.find((packet, i) => distance(ordered[0] as Rtp, packet) !== i);
}

/** From the packet on that came first: a key frame's. mediasoup may send behind that what was before it. */
function inOrder([first, ...others]: readonly Rtp[]): readonly Rtp[] {
  if (first === undefined) return [];
  const place = (packet: Rtp): number => distance(first, packet);
  return [first, ...others.filter((packet) => place(packet) > 0).sort((one, two) => place(one) - place(two))];
}

/** Fewer than half of the numbers come. */
function distance(from: Rtp, to: Rtp): number {
  return ((to.sequence - from.sequence) << 16) >> 16;
}

/** Those that have ended. */
function framesOf(packets: readonly Rtp[]): Frame[] {
  const frames: Frame[] = [];
  let payloads: Buffer[] = [];
  for (const { payload, marker, timestamp } of packets) {
    payloads.push(payload);
    if (!marker) continue;
    frames.push({ payloads, timestamp });
    payloads = [];
  }
  return frames;
}

function h264(frames: readonly Frame[]): { readonly track: VideoTrack; readonly frames: readonly Timed[] } {
  const units = frames.map(({ payloads, timestamp }) => ({ nals: depacketizeH264(payloads), timestamp }));
  const sets = units.find(({ nals }) => nals.some(isParameterSet))?.nals ?? [];
  const of = (type: number) => sets.filter((nal) => nalType(nal) === type);
  return {
    track: { ...VIDEO, codec: 'H264', config: buildAvcConfig({ sps: of(NAL.sps), pps: of(NAL.pps) }) },
    frames: units.map(({ nals, timestamp }) => ({
      data: canonicalize(joinNals(nals), 4).data,
      key: nals.some(isKeyNal),
      timestamp,
    })),
  };
}

function vp8(frames: readonly Frame[]): { readonly track: VideoTrack; readonly frames: readonly Timed[] } {
  return {
    track: VIDEO,
    frames: frames.map(({ payloads, timestamp }) => {
      const data = depacketizeVp8(payloads).frame;
      // RFC 6386 section 9.1
      return { data, key: (data.readUInt8(0) & 1) === 0, timestamp };
    }),
  };
}
