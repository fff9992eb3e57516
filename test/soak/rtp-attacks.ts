import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { VideoTrack } from '../../src/core/track.ts';
import { writeRtpHeader } from '../../src/protocols/rtp/header.ts';
import { createPacketizer } from '../../src/protocols/rtp/packetizer.ts';
import { RtpSender } from '../../src/protocols/rtp/sender.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { samples, vector } from '../unit/codecs/vectors.ts';
import { videoOf } from '../unit/protocols/rtp/receive/support.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

const TYPES = { H264: 96, VP8: 97, VP9: 98, AV1: 99 } as const;
type Codec = keyof typeof TYPES;

/** What `WhipPeer` announces. */
const SSRC = 1000;
const PICTURES = samples(vector('h264-baseline.mp4'));
const PAYLOAD = 1180;
const PACKETS = 400;
const NAMES = 16;
const CONNECT_MS = 3000;
const PACKETS_PER_MS = 10;

/** A publisher over WebRTC that is let in, connects, and then sends what no encoder does. */
export async function rtpAttack({ ports }: Kiln, random: Random): Promise<void> {
  const codec = random.pick(Object.keys(TYPES) as Codec[]);
  const raw = packets(codec, random);
  const peer = new PublisherPeer({ media: [{ track: videoOf(codec), frames: [] }], types: TYPES, raw });
  const name = `attack${random.below(NAMES)}`;
  try {
    const answer = await post(ports.http, `/app/${name}?direction=whip`, await peer.offer());
    if (answer === undefined) return;
    peer.answer(answer);
    await Promise.race([peer.until(() => peer.state === 'connected'), delay(CONNECT_MS)]);
    await delay(raw.length / PACKETS_PER_MS + random.below(100));
  } finally {
    peer.close();
  }
}

/** On a connection of its own, which is gone afterwards. @returns undefined where it is refused, as for a name that is taken */
async function post(port: number, path: string, body: string): Promise<string | undefined> {
  const headers = { 'content-type': 'application/sdp' };
  const outgoing = request({ host: '127.0.0.1', port, agent: false, method: 'POST', path, headers });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const sdp = await text(answer);
  return answer.statusCode === 201 ? sdp : undefined;
}

function packets(codec: Codec, random: Random): Buffer[] {
  return random.pick([() => units(codec, random), () => pictures(codec, random), () => noise(codec, random)])();
}

/** One frame after the other of nothing but the smallest units. */
function units(codec: Codec, random: Random): Buffer[] {
  const [header, unit] = {
    H264: ['18', random.pick(['000167', '000141', '0002658f'])],
    AV1: ['00', random.pick(['0128', '0130', '00'])],
    VP8: ['10', '00'],
    VP9: ['08', '00'],
  }[codec].map((hex) => Buffer.from(hex, 'hex')) as [Buffer, Buffer];
  const payload = Buffer.concat([header, ...Array.from({ length: Math.floor(PAYLOAD / unit.length) }, () => unit)]);
  const length = random.pick([1, 3, 50, PACKETS]);
  return Array.from({ length: PACKETS }, (_, i) =>
    packet(codec, i, Math.floor(i / length) * 3000, i % length === length - 1, payload),
  );
}

/** Pictures, broken anywhere. */
function pictures(codec: Codec, random: Random): Buffer[] {
  const made: Buffer[] = [];
  const track: VideoTrack = videoOf(codec);
  const sender = new RtpSender({
    payloadType: TYPES[codec],
    ssrc: SSRC,
    sequence: random.below(65_536),
    output: (bytes) => made.push(Buffer.from(bytes)),
  });
  const packetizer = createPacketizer(codec);
  for (let i = 0; i < PACKETS / 10; i++) {
    sender.timestamp = random.chance(0.95) ? i * 3600 : random.below(2 ** 32);
    const data = codec === 'H264' ? (PICTURES[i % PICTURES.length] as Buffer) : random.bytes(1 + random.below(5000));
    // what is no temporal unit cannot be packetized as one
    if (codec === 'AV1')
      made.push(
        packet(
          codec,
          i,
          sender.timestamp,
          true,
          Buffer.concat([Buffer.of(random.below(256)), data.subarray(0, PAYLOAD)]),
        ),
      );
    else packetizer.packetize({ track, dts: 0, pts: 0, duration: 0, key: i % 5 === 0, data }, sender);
  }
  return made
    .map((bytes) => (random.chance(0.9) ? bytes : mutate(bytes, random, bytes, 12)))
    .filter(() => random.chance(0.98));
}

function noise(codec: Codec, random: Random): Buffer[] {
  return Array.from({ length: PACKETS }, (_, i) =>
    packet(
      codec,
      random.chance(0.9) ? i : random.below(65_536),
      random.below(8) * 3000,
      random.chance(0.2),
      random.bytes(1 + random.below(PAYLOAD)),
    ),
  );
}

function packet(codec: Codec, sequence: number, timestamp: number, marker: boolean, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + payload.length);
  writeRtpHeader(bytes, { payloadType: TYPES[codec], marker, sequence, timestamp, ssrc: SSRC });
  payload.copy(bytes, 12);
  return bytes;
}
