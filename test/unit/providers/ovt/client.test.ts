import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import { pino } from 'pino';
import { buildAdtsHeader } from '../../../../src/codecs/aac.ts';
import { parseAvcConfig } from '../../../../src/codecs/h264.ts';
import { joinNals } from '../../../../src/codecs/nal.ts';
import { buildOpusConfig, buildOpusHead } from '../../../../src/codecs/opus.ts';
import { OvtClient } from '../../../../src/providers/ovt/client.ts';
import { OvtError } from '../../../../src/protocols/ovt/error.ts';
import { writeMessage } from '../../../../src/protocols/ovt/message.ts';
import { PAYLOAD } from '../../../../src/protocols/ovt/packet.ts';
import { playOvt, Recorder, silent } from '../../../support/ovt/ovt.ts';
import { describing, Origin, pictureOf, soundOf } from '../../../support/ovt/ovt-origin.ts';
import { AAC_LC, AVC_BASELINE, AVC_HIGH } from '../../../support/media/packets.ts';
import { standStill } from '../../../support/time/stand-still.ts';
import { until } from '../../../support/time/until.ts';
import { seeded } from '../../codecs/vectors.ts';

const IDR = Buffer.from('658884000410', 'hex');
const SLICE = Buffer.from('419a0010', 'hex');
const START = Buffer.of(0, 0, 0, 1);
const annexB = (...nals: Buffer[]) => Buffer.concat(nals.flatMap((nal) => [START, nal]));
const setsOf = (config: Buffer) => {
  const { sps, pps } = parseAvcConfig(config);
  return [...sps, ...pps];
};

async function playing(t: { teardown(undo: () => void): void }, contents: unknown) {
  const origin = new Origin(contents);
  const { client, recorder } = await playOvt(origin.connection);
  t.teardown(() => client.close());
  return {
    origin,
    client,
    recorder,
    packets: (count: number) => until(`${count} packets`, () => recorder.packets.length >= count && recorder.packets),
  };
}

test('H.264 with start codes: parameter sets leave, the picture is canonical', async (t) => {
  const { origin, recorder, packets } = await playing(t, describing(pictureOf(1, AVC_BASELINE)));
  origin.send({ dts: 1000, data: annexB(Buffer.of(9, 0xf0), ...setsOf(AVC_BASELINE), IDR) });
  origin.send({ dts: 1033, key: false, data: Buffer.concat([Buffer.of(0, 0, 1), SLICE]) });
  const [key, delta] = await packets(2);
  t.deepEqual([key?.data, delta?.data], [joinNals([IDR]), joinNals([SLICE])]);
  t.deepEqual([key?.key, delta?.key, (delta?.dts ?? 0) - (key?.dts ?? 0)], [true, false, 2970]);
  t.like(recorder.told[0]?.tracks[0], { codec: 'H264', width: 640, height: 360, timebase: { num: 1, den: 90_000 } });
  t.is(recorder.told.length, 1);
});

test('H.264 with lengths, of 4 bytes and of 2', async (t) => {
  for (const bytes of [4, 2]) {
    const config = Buffer.from(AVC_BASELINE);
    config[4] = 0xfc | (bytes - 1);
    const { origin, packets } = await playing(t, describing(pictureOf(1, config)));
    const length = Buffer.alloc(bytes);
    length.writeUIntBE(IDR.length, 0, bytes);
    origin.send({ bitstream: 0, data: Buffer.concat([length, IDR]) });
    const [key] = await packets(1);
    t.deepEqual(key?.data, joinNals([IDR]));
    t.deepEqual((key?.track as { config?: Buffer }).config, AVC_BASELINE);
  }
});

test('a track that is far behind what comes first begins where the times begin', async (t) => {
  const { origin, packets } = await playing(
    t,
    describing(pictureOf(1, AVC_BASELINE, 0), pictureOf(1, AVC_BASELINE, 1)),
  );
  const picture = (track: number, dts: number, key: boolean) =>
    origin.send({ track, dts, key, data: annexB(key ? IDR : SLICE) });
  picture(0, 10_000, true);
  for (let i = 0; i < 60; i++) {
    picture(0, 10_040 + i * 100, false);
    picture(1, 6000 + i * 100, i % 10 === 0);
  }
  const all = await packets(1 + 60 + 20);
  const behind = all.filter(({ track }) => track.id === 1);
  t.true(behind[0]?.key);
  t.is(behind[0]?.dts, all[0]?.dts ?? 0);
  t.deepEqual(new Set(behind.slice(1).map(({ dts }, i) => dts - (behind[i]?.dts ?? 0))), new Set([9000]));
});

test('missing descriptions of OVT tracks are read from the frames, and frames before those are left out', async (t) => {
  const { origin, recorder, packets } = await playing(t, describing(pictureOf(1), soundOf(7)));
  t.is(recorder.told.length, 0);
  origin.send({ key: false, data: annexB(SLICE) });
  const frame = Buffer.alloc(20, 1);
  const adts = (data: Buffer) =>
    Buffer.concat([buildAdtsHeader({ objectType: 2, samplerate: 48_000, channelConfiguration: 2 }, data.length), data]);
  origin.send({ track: 1, mediaType: 1, bitstream: 10, dts: 0, data: adts(frame) });
  origin.send({ dts: 40, data: annexB(...setsOf(AVC_BASELINE), IDR) });
  origin.send({ track: 1, mediaType: 1, bitstream: 10, dts: 21, data: Buffer.concat([adts(frame), adts(frame)]) });
  const [key, ...sound] = await packets(3);
  t.deepEqual(
    recorder.told.map(({ tracks }) => tracks.map(({ codec }) => codec)),
    [['H264', 'AAC']],
  );
  t.like(recorder.told[0]?.tracks[1], {
    config: AAC_LC,
    samplerate: 48_000,
    channels: 2,
    timebase: { num: 1, den: 48_000 },
  });
  t.is(key?.track.type, 'video');
  t.deepEqual(
    sound.map(({ data, duration }) => [data, duration]),
    [
      [frame, 1024],
      [frame, 1024],
    ],
  );
  t.is((sound[1]?.dts ?? 0) - (sound[0]?.dts ?? 0), 1024);
});

test('sound on a coarse clock is put together sample by sample', async (t) => {
  const { origin, packets } = await playing(t, describing(soundOf(7, AAC_LC)));
  for (let i = 0; i < 50; i++) {
    origin.send({ track: 1, mediaType: 1, bitstream: 8, dts: Math.floor((i * 1024) / 48), data: Buffer.alloc(9, i) });
  }
  const all = await packets(50);
  t.true(all.slice(1).every(({ dts }, i) => dts - (all[i]?.dts ?? 0) === 1024));
});

test('Opus comes with either of its headers', async (t) => {
  const config = {
    channels: 2,
    preSkip: 312,
    inputSamplerate: 48_000,
    outputGain: 0,
    mappingFamily: 0,
    mapping: undefined,
  };
  for (const header of [buildOpusHead(config), buildOpusConfig(config)]) {
    const { origin, recorder, packets } = await playing(t, describing(soundOf(9, header)));
    origin.send({ track: 1, mediaType: 1, bitstream: 12, dts: 0, data: Buffer.from('fcfffe', 'hex') });
    await packets(1);
    t.like(recorder.told[0]?.tracks[0], {
      codec: 'OPUS',
      config: buildOpusConfig(config),
      samplerate: 48_000,
      channels: 2,
    });
  }
});

test('a new configuration in the frames is announced before the frame', async (t) => {
  const { origin, recorder, packets } = await playing(t, describing(pictureOf(1, AVC_BASELINE)));
  origin.send({ data: annexB(IDR) });
  origin.send({ dts: 40, data: annexB(...setsOf(AVC_HIGH), IDR) });
  origin.send({ dts: 80, bitstream: 0, packetType: 2, data: AVC_BASELINE });
  origin.send({ dts: 80, bitstream: 0, data: joinNals([IDR]) });
  const all = await packets(3);
  t.deepEqual(
    recorder.told.map(({ tracks: [track] }) => (track as { width: number }).width),
    [640, 1280, 640],
  );
  t.true(all.every(({ track }, i) => track === recorder.told[i]?.tracks[0]));
});

test('pictures begin at a key frame, and go on at one behind what was lost or malformed', async (t) => {
  const { origin, packets } = await playing(t, describing(pictureOf(1, AVC_BASELINE), soundOf(7, AAC_LC)));
  const delta = (dts: number) => origin.send({ dts, key: false, data: annexB(SLICE) });
  delta(0);
  origin.send({ dts: 40, data: annexB(IDR) });
  delta(80);
  origin.send({ dts: 120, bitstream: 6, data: annexB(IDR) });
  delta(160);
  origin.send({ track: 1, mediaType: 1, bitstream: 8, dts: 170, data: Buffer.of(1) });
  origin.send({ dts: 200, data: annexB(IDR) });
  const all = await packets(4);
  t.deepEqual(
    all.map(({ key, track }) => (track.type === 'audio' ? 'sound' : key)),
    [true, false, 'sound', true],
  );
});

test('tracks that are not carried, and undescribed ones, are left out', async (t) => {
  const subtitles = { ...pictureOf(13, undefined, 7), mediaType: 3 };
  const { origin, recorder, packets } = await playing(t, describing(pictureOf(1, AVC_BASELINE), subtitles));
  origin.send({ track: 7, mediaType: 3, bitstream: 24, data: Buffer.from('WEBVTT') });
  origin.send({ track: 99, data: Buffer.of(1) });
  origin.send({ data: annexB(IDR) });
  t.is((await packets(1)).length, 1);
  t.deepEqual(
    recorder.told.map(({ tracks }) => tracks.length),
    [1],
  );
  await t.throwsAsync(playing(t, describing(subtitles)), {
    instanceOf: OvtError,
    message: 'the stream has no supported track',
  });
});

test('supported events of a data track are taken, and others are no fault', async (t) => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const origin = new Origin(describing({ ...pictureOf(0, undefined, 2), mediaType: 2 }));
  const { client, recorder } = await playOvt(origin.connection, { log });
  const [amf, cue, id3] = [21, 20, 18];
  for (const bitstream of [amf, cue, id3])
    origin.send({ track: 2, mediaType: 2, packetType: 4, bitstream, data: Buffer.from(`${bitstream}`) });
  await until('what is carried', () => recorder.packets.length > 0);
  client.close();
  t.deepEqual(
    recorder.packets.map(({ data }) => data.toString()),
    [`${id3}`],
  );
  t.deepEqual(lines, []);
});

test('the origin refuses, says nonsense or nothing: the client says which', async (t) => {
  const failure = async (contents: unknown): Promise<string> => {
    const { message } = await t.throwsAsync(OvtClient.connect(new Origin(contents).connection, { log: silent }), {
      instanceOf: OvtError,
    });
    return message;
  };
  t.is(await failure(404), 'the origin refused (404): m');
  t.is(await failure({ version: 17 }), 'description version 17 is not 18');
  t.is(await failure(undefined), 'no answer to describe in time');
  await t.throwsAsync(OvtClient.connect('ovt://127.0.0.1:1/app/talk', { log: silent }), {
    instanceOf: OvtError,
    message: /cannot be reached/,
  });
  await t.throwsAsync(OvtClient.connect('rtmp://127.0.0.1/app/talk', { log: silent }), {
    instanceOf: OvtError,
    message: /not an OVT URL/,
  });
});

test('an OVT client ends once, with a reason, and calls nothing after close()', async (t) => {
  const contents = describing(pictureOf(1, AVC_BASELINE));
  for (const [end, reason] of [
    [
      (origin: Origin) => origin.say({ id: 0, application: 'stop', code: 200, message: 'bye' }),
      'the origin ended the stream: bye',
    ],
    [(origin: Origin) => origin.stream.end(), 'the origin closed the connection'],
    [(origin: Origin) => origin.stream.write(Buffer.alloc(100, 0xff)), 'packet version 3 is not 1'],
    [(origin: Origin) => origin.say([]), 'an answer is not JSON with id, application and code'],
    [
      (origin: Origin) => origin.say({ id: 0, application: 'notify', code: 200, message: 'track_changed' }),
      /^description /,
    ],
  ] as const) {
    const { origin, recorder } = await playing(t, contents);
    end(origin);
    const ended = await until('the end', () => recorder.ended);
    if (typeof reason === 'string') t.is(ended.reason, reason);
    else t.regex(ended.reason, reason);
  }
  const { origin, client, recorder } = await playing(t, contents);
  client.close();
  origin.send({ data: annexB(IDR) });
  origin.stream.destroy();
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual([recorder.packets.length, recorder.ended], [0, undefined]);
});

test.serial('an answer that came while this process stood still is taken', async (t) => {
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', () => {
        socket.write(writeMessage(PAYLOAD.response, { id: 1, application: 'describe', code: 404, message: 'none' }, 0));
        standStill(1600);
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  await t.throwsAsync(OvtClient.connect(`ovt://127.0.0.1:${port}/app/talk`, { log: silent }), {
    message: /refused \(404\): none/,
  });
});

test('silence ends it where that is asked for', async (t) => {
  const origin = new Origin(describing(pictureOf(1, AVC_BASELINE)));
  const { recorder } = await playOvt(origin.connection, { silenceMs: 100 });
  t.regex((await until('the end', () => recorder.ended)).reason, /no data for 100 ms/);
});

test('an OVT client ends with a reason and does no harm, whatever an origin sends', async (t) => {
  const random = seeded(20_261_224);
  const upTo = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 150; round++) {
    const origin = new Origin(
      describing(pictureOf(1, AVC_BASELINE), soundOf(7, AAC_LC), pictureOf(5, undefined, 2), soundOf(9, undefined, 3)),
    );
    const client = await OvtClient.connect(origin.connection, { log: silent });
    const recorder = new Recorder();
    await client.play(recorder);
    for (let i = 0; i < 30; i++) {
      const data = Buffer.from(Array.from({ length: upTo(60) }, () => upTo(random() < 0.5 ? 4 : 256)));
      origin.send({
        track: upTo(5),
        bitstream: [0, 1, 8, 10, 12, 26, upTo(256)][upTo(7)] as number,
        packetType: upTo(7),
        dts: [0, i * 40, -5, 2 ** 52, upTo(1e9)][upTo(5)] as number,
        pts: [0, i * 40, 2 ** 52][upTo(3)] as number,
        data,
      });
    }
    if (round % 3 === 0) origin.stream.write(Buffer.from(Array.from({ length: 200 }, () => upTo(256))));
    await new Promise((resolve) => setImmediate(resolve));
    t.true(recorder.packets.every(({ dts, pts }) => Number.isSafeInteger(dts) && Number.isSafeInteger(pts)));
    t.not(recorder.ended?.reason, 'internal error');
    client.close();
  }
});
