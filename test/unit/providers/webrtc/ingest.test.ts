import test, { type ExecutionContext } from 'ava';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import { pino } from 'pino';
import { joinNals, nalUnits, splitAnnexB } from '../../../../src/codecs/nal.ts';
import * as h264 from '../../../../src/codecs/h264.ts';
import type { WebrtcProviderConfig } from '../../../../src/config/model.ts';
import { Counters } from '../../../../src/core/counters.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import { FaultLog } from '../../../../src/log/log.ts';
import { createPacketizer } from '../../../../src/protocols/rtp/packetizer.ts';
import { RtpSender } from '../../../../src/protocols/rtp/sender.ts';
import type { IngestPlan } from '../../../../src/providers/webrtc/accepted.ts';
import { Ingest } from '../../../../src/providers/webrtc/ingest.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';
import { vector } from '../../codecs/vectors.ts';
import { videoOf } from '../../protocols/rtp/receive/support.ts';

const CONFIG = {
  maxConnection: 0,
  timestampMode: 'Auto',
  packetSilenceTimeoutMs: 0,
  timeout: 30_000,
  firInterval: 0,
  rtcpBasedTimestamp: false,
  rtx: { enable: false, maxHoldMs: 400 },
} as WebrtcProviderConfig;
const plan = (kind: 'video' | 'audio', codec: string, rids: string[] = []) =>
  ({ kind, codec, rids }) as unknown as IngestPlan;

const NALS = splitAnnexB(vector('h264-baseline.h264'));
const ofType = (...types: number[]) => NALS.filter((nal) => types.includes(h264.nalType(nal)));
const CONFIG_RECORD = buildAvcConfig({
  sps: ofType(h264.NAL.sps).slice(0, 1),
  pps: ofType(h264.NAL.pps).slice(0, 1),
});
const KEY = joinNals(ofType(h264.NAL.idr).slice(0, 1));
/** Parameter sets alone: what is sent with every key frame goes without one. */
const SETS = Buffer.alloc(0);
const PICTURE = joinNals(ofType(h264.NAL.slice).slice(0, 1));

function setUp(t: ExecutionContext, plans: readonly IngestPlan[], config: Partial<WebrtcProviderConfig> = {}) {
  const input = new InputStream('stream', { type: 'WebRTC', kind: 'webrtc' }, new Counters());
  const faults = new FaultLog(pino({ level: 'silent' }));
  const asked: IngestPlan['kind'][] = [];
  const failures: string[] = [];
  const ingest = new Ingest({
    sink: {
      setTracks: (tracks) => input.setTracks(tracks),
      write: (packet) => input.write(packet),
      lost: (lost) => input.counters.lost(lost),
      trouble: (code, description) => void input.emit('trouble', code, description),
    },
    config: { ...CONFIG, ...config },
    faults,
    plans,
    onKeyWanted: ({ kind }) => asked.push(kind),
    onFailure: (reason) => failures.push(reason),
  });
  input.on('keyWanted', () => ingest.wantKeys());
  t.teardown(() => {
    ingest.close();
    faults.close();
  });
  const packets: Packet[] = [];
  input.read({ packet: (packet) => void packets.push(packet) });
  /** Sends pictures of H.264 in a stream of a section. */
  const sender = (of: IngestPlan, layer = 0) => {
    const lane = ingest.lanes(of)[layer];
    const rtp = new RtpSender({
      payloadType: 96,
      ssrc: 7 + layer,
      sequence: 1,
      output: (bytes) => lane && ingest.push(lane, Buffer.from(bytes)),
    });
    const packetizer = createPacketizer('H264');
    return (data: Buffer, timestamp: number) => {
      rtp.timestamp = timestamp;
      packetizer.packetize(
        { track: videoOf('H264', CONFIG_RECORD), dts: 0, pts: 0, duration: 0, key: data !== PICTURE, data },
        rtp,
      );
    };
  };
  return { input, ingest, asked, failures, packets, sender };
}

test('a new reader of a WebRTC stream or its output has key frames requested, at once and again as long as none comes', async (t) => {
  const { input, ingest, asked } = setUp(t, [plan('audio', 'OPUS'), plan('video', 'VP8')]);
  const output = input.addOutput('stream');
  output.read({ packet: () => {} });
  output.read({ packet: () => {} });
  t.deepEqual(asked, ['video']);
  await until('it is asked for again', () => asked.length > 1);
  ingest.close();
  const before = asked.length;
  input.read({ packet: () => {} });
  t.is(asked.length, before);
});

test('pictures that are sent in another order than they are shown have their times of decoding', (t) => {
  const video = plan('video', 'H264');
  const { packets, sender } = setUp(t, [video]);
  const send = sender(video);
  const order = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11];
  for (const place of order) send(place === 0 ? KEY : PICTURE, 100_000 + place * 3600);
  t.is(packets.length, order.length);
  const [first] = packets;
  packets.slice(1).forEach(({ dts, pts }, index) => {
    t.true(dts > (packets[index]?.dts as number), `${index}`);
    t.true(pts >= dts, `${index}`);
  });
  // it takes some pictures until their order is known
  packets.slice(4).forEach(({ pts }, index) => t.is(pts - (first?.pts as number), (order[index + 4] as number) * 3600));
});

test('parameter sets in a frame of their own cost no picture', (t) => {
  const video = plan('video', 'H264');
  const { packets, sender } = setUp(t, [video]);
  const send = sender(video);
  send(KEY, 0);
  send(PICTURE, 3600);
  send(SETS, 5400);
  send(PICTURE, 7200);
  send(PICTURE, 10_800);
  t.deepEqual(
    packets.map(({ dts }) => dts),
    [0, 3600, 7200, 10_800],
  );
  t.true(packets.every(({ data }) => [...nalUnits(data)].length > 0));
});

test.serial('a quality that nothing comes of is not asked for', async (t) => {
  virtualTime(t);
  const video = plan('video', 'H264', ['high', 'low']);
  const { input, asked, sender } = setUp(t, [video]);
  const send = sender(video, 1);
  send(KEY, 0);
  const before = asked.length;
  const begin = performance.now();
  let sent = 0;
  await until('others would have been asked for three times', () => {
    send(PICTURE, ++sent * 3600);
    return performance.now() - begin > 1700;
  });
  t.is(asked.length, before);
  input.wantKey();
  t.is(asked.length, before + 1);
});

test('a quality that comes without a key frame is asked for until it has one', async (t) => {
  const video = plan('video', 'H264', ['high', 'low']);
  const { asked, sender } = setUp(t, [video]);
  const [high, low] = [sender(video, 0), sender(video, 1)];
  low(KEY, 0);
  let sent = 0;
  const askedThrice = await until('it is asked for again and again', () => {
    high(PICTURE, ++sent * 3600);
    low(PICTURE, sent * 3600);
    return asked.length > 2;
  });
  t.true(askedThrice);
});

test('a stream that brings nothing playable says what came', async (t) => {
  const video = plan('video', 'H264');
  const { failures, sender } = setUp(t, [plan('audio', 'OPUS'), video], { timeout: 1000 });
  const send = sender(video);
  for (let i = 0; i < 5; i++) send(PICTURE, i * 3600);
  await until('it fails', () => failures.length > 0);
  t.is(failures.length, 1);
  // whichever of the two is noticed first
  t.regex(
    failures[0] ?? '',
    /^no (?:playable audio or video within|packet for) 1000 ms \(OPUS: 0 packets, 0 frames; H264: 5 packets, 5 frames\)$/,
  );
});

for (const [what, plans, config] of [
  ['audio', [plan('audio', 'OPUS')], {}],
  ['audio, where reports are waited for', [plan('audio', 'OPUS')], { rtcpBasedTimestamp: true }],
] as const) {
  test(`${what} that has a section and never comes is no track, and is waited for once`, async (t) => {
    const video = plan('video', 'H264');
    const { input, sender } = setUp(t, [...plans, video], config);
    const told: number[][] = [];
    input.on('tracks', (tracks) => told.push(tracks.map(({ id }) => id)));
    const send = sender(video);
    let sent = 0;
    await until('the stream', () => {
      send(KEY, sent++ * 3600);
      return told.length > 0;
    });
    t.deepEqual(told, [[0]]);
  });
}

for (const [timestampMode, first] of [
  ['Auto', 0],
  ['ZeroBased', 0],
  ['Original', 900_000],
] as const) {
  test(`TimestampMode ${timestampMode}`, (t) => {
    const video = plan('video', 'H264');
    const { packets, sender } = setUp(t, [video], { timestampMode });
    const send = sender(video);
    send(KEY, 900_000);
    send(PICTURE, 903_600);
    t.deepEqual(
      packets.map(({ dts, pts }) => [dts, pts]),
      [
        [first, first],
        [first + 3600, first + 3600],
      ],
    );
  });
}
