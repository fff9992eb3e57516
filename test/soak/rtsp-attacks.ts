import type { Socket } from 'node:net';
import type { MediaTrack } from '../../src/core/track.ts';
import { createPacketizer } from '../../src/protocols/rtp/packetizer.ts';
import { RtpSender } from '../../src/protocols/rtp/sender.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { samples, vector } from '../unit/codecs/vectors.ts';
import { pullFrom } from './hostile-origin.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

const PICTURES = samples(vector('h264-baseline.mp4'));
const FRAMES = 30;
const PLAY_MS = 200;
const REQUEST = /^([A-Z_]+) \S+ RTSP\/1\.0\r\n(?:.+\r\n)*?CSeq: *(\d+)\r\n(?:.+\r\n)*?\r\n/im;

/** What cameras and servers describe (RFC 2326 appendix C). */
const SDP = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=x',
  't=0 0',
  'a=control:*',
  'a=range:npt=now-',
  'm=video 0 RTP/AVP 96',
  'a=rtpmap:96 H264/90000',
  'a=control:track1',
  'a=fmtp:96 packetization-mode=1;profile-level-id=42C00A;sprop-parameter-sets=Z0LACtoGWwEQAAADABAAAAMDIPFCKg==,aM4PyA==',
  'm=audio 0 RTP/AVP 97',
  'a=rtpmap:97 mpeg4-generic/48000/2',
  'a=control:track2',
  'a=fmtp:97 streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1190',
  'm=audio 0 RTP/AVP 8',
  'a=rtpmap:8 PCMA/8000',
  'a=control:track3',
  '',
];

/** A server that is pulled from and lies: in what it describes, in its answers, in its media. */
export function hostileRtspServer(kiln: Kiln, random: Random): Promise<void> {
  const query = random.pick(['', '', '?transport=udp', '?transport=tcp']);
  const user = random.pick(['', '', 'user:password@']);
  return pullFrom(
    kiln,
    random,
    (port) => `rtsp://${user}127.0.0.1:${port}/x${query}`,
    (socket) => converse(socket, random),
  );
}

function converse(socket: Socket, random: Random): void {
  let received = '';
  socket.on('data', (bytes: Buffer) => {
    received += bytes.toString('latin1');
    for (let found = REQUEST.exec(received); found !== null; found = REQUEST.exec(received)) {
      received = received.slice(found.index + found[0].length);
      const [request, method = '', sequence = '0'] = found;
      answer(socket, random, { method: method.toUpperCase(), sequence, request });
    }
  });
}

interface Asked {
  readonly method: string;
  readonly sequence: string;
  readonly request: string;
}

function answer(socket: Socket, random: Random, { method, sequence, request }: Asked): void {
  const write = (bytes: Buffer, share = 0.85): void => {
    if (!socket.destroyed) socket.write(random.chance(share) ? bytes : mutate(bytes, random, bytes));
  };
  const status = random.chance(0.95)
    ? '200 OK'
    : random.pick(['401 Unauthorized', '302 Found', '461 Unsupported transport', '500 x', '99 x', '']);
  const body = method === 'DESCRIBE' ? brokenSdp(random) : '';
  const port = socket.localPort ?? 0;
  const headers = [
    `CSeq: ${random.chance(0.98) ? sequence : random.below(100)}`,
    `Session: ${random.pick(['1', '1;timeout=2', 'x'.repeat(300), ''])}`,
    ...(method === 'DESCRIBE' ? ['Content-Type: application/sdp', `Content-Base: rtsp://127.0.0.1:${port}/x/`] : []),
    ...(method === 'SETUP' ? [`Transport: ${transportOf(request, random)}`] : []),
    ...(method === 'PLAY' ? ['RTP-Info: url=track1;seq=1;rtptime=0'] : []),
    ...(status.startsWith('401')
      ? [`WWW-Authenticate: ${random.pick(['Basic realm="x"', 'Digest realm="x", nonce="y"', 'Digest', 'x'])}`]
      : []),
    ...(status.startsWith('302') ? [`Location: rtsp://127.0.0.1:${random.pick([port, 1])}/${random.below(9)}`] : []),
    ...(body === ''
      ? []
      : [`Content-Length: ${random.chance(0.97) ? Buffer.byteLength(body) : random.below(100_000)}`]),
  ];
  write(Buffer.from(`RTSP/1.0 ${status}\r\n${headers.join('\r\n')}\r\n\r\n${body}`));
  if (method !== 'PLAY') return;
  for (const packet of media(random)) write(packet, 0.95);
  setTimeout(() => socket.end(), random.below(PLAY_MS));
}

function transportOf(request: string, random: Random): string {
  const asked = /^Transport: *(.*)$/im.exec(request)?.[1] ?? '';
  return random.pick([
    asked,
    asked,
    asked,
    `${asked};server_port=${random.below(70_000)}-${random.below(70_000)}`,
    `${asked};source=127.0.0.${random.below(9)}`,
    'RTP/AVP',
    '',
  ]);
}

function brokenSdp(random: Random): string {
  const lines = [...SDP];
  for (let i = random.below(3); i > 0; i--) {
    const at = random.below(lines.length);
    const line = lines[at] ?? '';
    lines.splice(
      at,
      1,
      ...random.pick([
        [],
        [line, line],
        [random.pick(SDP)],
        [line.replace(/\d+/g, () => random.pick(['0', '-1', '65536', '4294967296', 'x']))],
        [line.slice(0, random.below(line.length + 1))],
        Array.from({ length: 200 }, () => line),
      ]),
    );
  }
  return lines.join(random.pick(['\r\n', '\r\n', '\n']));
}

/** Interleaved packets (RFC 2326 section 10.12). */
function media(random: Random): Buffer[] {
  const packets: Buffer[] = [];
  const put = (channel: number, data: Buffer): void => {
    packets.push(Buffer.concat([Buffer.of(0x24, channel, data.length >> 8, data.length & 255), data]));
  };
  const sender = new RtpSender({
    payloadType: 96,
    ssrc: 1,
    sequence: random.below(65_536),
    output: (packet) => put(0, Buffer.from(packet)),
  });
  const packetizer = createPacketizer('H264');
  const track = { codec: 'H264' } as MediaTrack;
  for (let i = 0; i < FRAMES; i++) {
    sender.timestamp = random.chance(0.95) ? i * 3600 : random.below(2 ** 32);
    packetizer.packetize(
      { track, dts: 0, pts: 0, duration: 0, key: i % 2 === 0, data: PICTURES[i % PICTURES.length] as Buffer },
      sender,
    );
    put(2, Buffer.concat([rtpHead(97, i, i * 1024), Buffer.from('00100140', 'hex'), random.bytes(40)]));
    if (random.chance(0.3)) put(random.below(8), random.bytes(random.below(100)));
    if (random.chance(0.2)) put(1, Buffer.concat([Buffer.from('80c80006', 'hex'), random.bytes(24)]));
  }
  return packets;
}

function rtpHead(type: number, sequence: number, timestamp: number): Buffer {
  const head = Buffer.alloc(12);
  head.set([0x80, 0x80 | type]);
  head.writeUInt16BE(sequence, 2);
  head.writeUInt32BE(timestamp, 4);
  head.writeUInt32BE(2, 8);
  return head;
}
