import { readFile } from 'node:fs/promises';
import { getSupportedRtpCapabilities, version, type types } from 'mediasoup';
import test, { type ExecutionContext } from 'ava';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import { offeredCodec } from '../../../src/webrtc/codecs.ts';
import { consume } from '../../../src/webrtc/consume.ts';
import { openOutlet, FEED_PAYLOAD_TYPE } from '../../../src/webrtc/feed/outlet.ts';
import { MediaWorker } from '../../../src/webrtc/media-worker.ts';
import { pipe } from '../../../src/webrtc/pipe.ts';
import { until } from '../../support/time/until.ts';
import { parseRtp, type Rtp } from '../../support/webrtc/rtp.ts';
import { seeded } from '../../unit/codecs/vectors.ts';

/**
 * What H.265 over WebRTC depends on, and no documentation of mediasoup promises: payloads of AV1 are neither read nor changed, and
 * none of them is waited for. Read `src/webrtc/declared.ts` before a change of these tests.
 */
type Named = 'H264' | 'H265' | 'AV1';
const SSRC = 7;

async function startWorker(t: ExecutionContext): Promise<MediaWorker> {
  const socket = { protocol: 'udp', ip: '127.0.0.1', port: 0, announced: ['127.0.0.1'] } as const;
  const worker = await MediaWorker.start(0, [socket], (error) => t.fail(error.message));
  t.teardown(() => worker.close());
  return worker;
}

/** A producer, and a consumer of it that is paused, with what comes to it. */
async function open(worker: MediaWorker, name: Named) {
  const codec = offeredCodec(name, false, 'All');
  const { producer, channel, head } = await openOutlet(worker, codec, { ssrcs: [SSRC], extensions: [], cname: name });
  const far = await worker.createDirectTransport();
  const consumer = await consume(far, producer, { mid: '0', codec, extensions: [] });
  const came: Rtp[] = [];
  consumer.on('rtp', (packet) => came.push(parseRtp(packet)));
  let sequence = 65_000;
  const add = (payload: Buffer, marker: boolean, timestamp: number): void => {
    const packet = Buffer.alloc(12 + payload.length);
    const fields = { payloadType: FEED_PAYLOAD_TYPE, ssrc: SSRC, marker, timestamp };
    writeRtpHeader(packet, { ...fields, sequence: sequence++ & 0xffff });
    payload.copy(packet, 12);
    channel.add(head, packet);
  };
  return { codec, producer, consumer, came, add, flush: () => channel.flush() };
}

test('mediasoup is the version that was tested, and has no H.265, which would have to be declared as itself then', async (t) => {
  const { dependencies } = JSON.parse(await readFile('package.json', 'utf8')) as {
    dependencies: { mediasoup: string };
  };
  t.is(version, dependencies.mediasoup);
  const names = getSupportedRtpCapabilities().codecs?.map(({ mimeType }) => mimeType.toLowerCase()) ?? [];
  t.true(names.includes('video/av1'));
  t.deepEqual(
    names.filter((name) => /h265|hevc/.test(name)),
    [],
  );
});

test('any payload of H.265 comes as it was sent, whatever its first byte, and where H.264 would be waited for', async (t) => {
  const worker = await startWorker(t);
  const [h265, h264] = [await open(worker, 'H265'), await open(worker, 'H264')];
  await Promise.all([h265.consumer.resume(), h264.consumer.resume()]);
  const random = seeded(265);
  const PER_BYTE = 8;
  const sent = Array.from({ length: 256 * PER_BYTE }, (_, index) => {
    const body = Array.from({ length: 3 + Math.floor(random() * 60) }, () => Math.floor(random() * 256));
    return { payload: Buffer.from([index >> 3, ...body]), marker: index % PER_BYTE === PER_BYTE - 1, time: index >> 3 };
  });
  // no unit of H.264 that begins a key frame
  for (const { marker, time } of sent) h264.add(Buffer.from([0x41, 1, 1, 1]), marker, time * 3000);
  h264.flush();
  for (const { payload, marker, time } of sent) h265.add(payload, marker, time * 3000);
  h265.flush();
  await until('all have come', () => h265.came.length >= sent.length);
  t.true(
    h265.came.every(
      ({ payload, marker }, at) => payload.equals(sent[at]?.payload as Buffer) && marker === sent[at]?.marker,
    ),
  );
  t.is(h264.came.length, 0, 'a worker that reads payloads is seen here');
});

for (const name of ['H265', 'AV1'] as const)
  test(`${name}: a consumer goes on with what comes next, and so with a key frame where it resumes right before that`, async (t) => {
    const { consumer, came, add, flush } = await open(await startWorker(t), name);
    const frame = (number: number) => {
      for (const part of [0, 1, 2]) add(Buffer.from([0x60, 1, number, part]), part === 2, number * 3000);
      flush();
    };
    for (const number of [1, 2]) frame(number);
    const resumed = consumer.resume();
    for (const number of [3, 4]) frame(number);
    await resumed;
    await until('both frames', () => came.length >= 6);
    await consumer.pause();
    frame(5);
    const again = consumer.resume();
    frame(6);
    await again;
    await until('the frame after that', () => came.length >= 9);
    t.deepEqual(
      came.map(({ payload }) => payload[2]),
      [3, 3, 3, 4, 4, 4, 6, 6, 6],
    );
    t.true(came.every(({ sequence }, at) => at === 0 || sequence === (((came[0] as Rtp).sequence + at) & 0xffff)));
  });

test('AV1 is never given to who takes H.265, nor the reverse, not by a pipe either', async (t) => {
  const worker = await startWorker(t);
  const [h265, av1] = [await open(worker, 'H265'), await open(worker, 'AV1')];
  const transport = await worker.createDirectTransport();
  for (const [{ producer }, { codec }] of [
    [h265, av1],
    [av1, h265],
  ] as const) {
    const options = { mid: '0', codec, extensions: [] };
    await t.throwsAsync(async () => consume(transport, producer, options), { message: /has no video/ });
    const source = { worker, producer, encoding: 0 };
    await t.throwsAsync(pipe([source], worker, codec, 'name'), { message: /has no video/ });
  }
  const { producer, close } = await pipe(
    [{ worker, producer: h265.producer, encoding: 0 }],
    worker,
    h265.codec,
    'name',
  );
  t.teardown(close);
  const seen: types.Consumer = await consume(transport, producer, { mid: '0', codec: h265.codec, extensions: [] });
  t.is(seen.rtpParameters.codecs[0]?.payloadType, h265.codec.payloadType);
});
