import { execFile, execFileSync } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { adtsFrames } from '../../../../src/codecs/aac.ts';
import { BitstreamError } from '../../../../src/codecs/bits.ts';
import { nalUnits, splitAnnexB } from '../../../../src/codecs/nal.ts';
import { TsMuxer } from '../../../../src/containers/mpegts/muxer.ts';
import { writePlanned } from '../../../../src/containers/mpegts/planned-unit.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { rescale, VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import type { AudioTrack, DataTrack, Track, VideoTrack } from '../../../../src/core/track.ts';
import { containerOf } from '../../../../src/recording/container.ts';
import { codedPackets, tracksOf, type Coded } from '../../../support/media/coded-packets.ts';
import { decode } from '../../../support/media/decoder.ts';
import { klvItem } from '../../../support/media/klv.ts';
import {
  audioPackets,
  audioTrack,
  dataTrack,
  eventPacket,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../support/media/packets.ts';
import { analyse, type TsAnalysis } from '../../../support/mpegts/ts-analyser.ts';
import { seeded } from '../../../unit/codecs/vectors.ts';

const WRAP = 2 ** 33;
/** Streams begin at 0; times are so much later, for the PCR is in front of them. */
const OFFSET = 90_000;
const mux = (packets: readonly Packet[], muxer = new TsMuxer(tracksOf(packets))) =>
  Buffer.concat(packets.map((packet) => muxer.write(packet)));
const ticks = (time: number, { timebase }: Track) => (rescale(time, timebase, VIDEO_TIMEBASE) + OFFSET + WRAP) % WRAP;

/** What every stream has to be. */
function right(t: ExecutionContext, analysis: TsAnalysis): void {
  t.deepEqual(analysis.errors, []);
  for (const [pid, times] of analysis.pcrs) {
    const gaps = times.slice(1).map((time, index) => (time - (times[index] as number) + WRAP) % WRAP);
    t.true(
      gaps.every((gap) => gap <= 9000),
      `PCRs of PID ${pid} are ${Math.max(...gaps)} apart`,
    );
  }
}

function ffprobe(t: ExecutionContext, ts: Buffer, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      'ffprobe',
      ['-loglevel', 'warning', ...args, '-f', 'mpegts', 'pipe:0'],
      { maxBuffer: 1 << 26 },
      (error, out, err) => {
        t.is(err, '');
        if (error === null) resolve(out);
        else reject(error);
      },
    );
    child.stdin?.end(ts);
  });
}

const CODED: readonly (readonly [name: string, coded: Coded])[] = [
  ['H264 with B-frames and AAC', { video: { codec: 'H264' }, audio: 'AAC', seconds: 3 }],
  ['H265 and E-AC-3', { video: { codec: 'H265' }, audio: 'EAC3', seconds: 2 }],
  ['H264 of five frames a second and MP3', { video: { codec: 'H264', rate: 5, gop: 10 }, audio: 'MP3', seconds: 3 }],
  ['Opus alone', { audio: 'OPUS', seconds: 2 }],
  ['AC-3 alone', { audio: 'AC3', seconds: 1 }],
  ['MP2 alone', { audio: 'MP2', seconds: 1 }],
  ['H264 in large frames', { video: { codec: 'H264', size: '1280x720', gop: 10 }, seconds: 1 }],
];

for (const [name, coded] of CODED) {
  test(`${name}: what is written decodes without a fault, and has the frames and times that went in`, async (t) => {
    const packets = codedPackets(coded);
    const ts = mux(packets);
    const analysis = analyse(ts);
    right(t, analysis);
    const [pmt] = analysis.pmts;
    const tracks = tracksOf(packets);
    t.is(pmt?.streams.size, tracks.length);
    [...(pmt?.streams.keys() ?? [])].forEach((pid, index) => {
      const own = packets.filter(({ track }) => track === tracks[index]);
      const pes = analysis.pes.get(pid) ?? [];
      t.is(pes.length, own.length);
      t.deepEqual(
        pes.map(({ pts, dts }) => [pts, dts]),
        own.map(({ pts, dts, track }) => [ticks(pts, track), ticks(dts, track)]),
      );
      const pictures = own[0]?.track.type === 'video';
      if (!pictures) return;
      t.deepEqual(
        pes.map(({ random }) => random),
        own.map(({ key }) => key),
      );
      pes.forEach(({ payload }, at) => {
        const nals = splitAnnexB(payload).map((nal) => nal.toString('hex'));
        const wanted = [...nalUnits((own[at] as Packet).data)].map((nal) => nal.toString('hex').replace(/(00)+$/, ''));
        t.deepEqual(nals.slice(-wanted.length), wanted);
      });
    });
    const out = JSON.parse(await ffprobe(t, ts, ['-show_streams', '-count_packets', '-of', 'json'])) as {
      streams: { codec_name: string; nb_read_packets: string }[];
    };
    const names: Record<string, string> = {
      H264: 'h264',
      H265: 'hevc',
      AAC: 'aac',
      OPUS: 'opus',
      MP3: 'mp3',
      MP2: 'mp2',
      AC3: 'ac3',
      EAC3: 'eac3',
    };
    t.deepEqual(
      out.streams.map((stream) => [stream.codec_name, Number(stream.nb_read_packets)]),
      tracks.map((track) => [names[track.codec], packets.filter((packet) => packet.track === track).length]),
    );
    t.is(await decode(ts), '');
  });
}

test('every key frame begins with tables, a random access point, a PCR, a delimiter and parameter sets', (t) => {
  const track = videoTrack();
  const analysis = analyse(mux(videoPackets(track, { to: 3, gop: 30, bytes: 400 }).map(withNal)));
  right(t, analysis);
  const pes = analysis.pes.get(0x100) ?? [];
  const keys = pes.filter(({ random }) => random);
  t.is(keys.length, 3);
  for (const { packet, payload } of keys) {
    t.true(analysis.pats.includes(packet - 2));
    t.true(analysis.pmts.some((pmt) => pmt.packet === packet - 1));
    t.deepEqual(
      splitAnnexB(payload).map((nal) => (nal[0] as number) & 31),
      [9, 7, 8, 1],
    );
  }
  t.true(analysis.pats.length >= 3 * 4, `${analysis.pats.length} times in three seconds`);
});

test('the PCR runs in front of what is decoded, on the picture, and goes on with the sound when that is silent', (t) => {
  const video = videoTrack();
  const audio = audioTrack();
  const pictures = [...videoPackets(video, { to: 2 }), ...videoPackets(video, { from: 8, to: 9 })].map(withNal);
  const analysis = analyse(mux(interleaved(pictures, audioPackets(audio, { to: 9 }))));
  right(t, analysis);
  t.deepEqual([...analysis.pcrs.keys()], [0x100]);
  const times = analysis.pcrs.get(0x100) ?? [];
  t.is(times[0], OFFSET - 18_000);
  t.is(
    times.at(-1),
    (analysis.pes.get(0x100)?.at(-1)?.dts ?? 0) -
      18_000 -
      3000 * ((analysis.pes.get(0x100)?.length ?? 0) % 2 === 0 ? 1 : 0),
  );
});

test('MPEG-TS times wrap at 33 bits', (t) => {
  const video = videoTrack();
  const shift = WRAP - OFFSET - 90_000;
  const packets = videoPackets(video, { to: 2 }).map((packet) =>
    withNal({ ...packet, dts: packet.dts + shift, pts: packet.pts + shift }),
  );
  const analysis = analyse(mux(packets));
  right(t, analysis);
  const times = (analysis.pes.get(0x100) ?? []).map(({ dts }) => dts);
  t.is(times[0], WRAP - 90_000);
  t.is(times[30], 0);
});

test('a clock that jumps back signals a discontinuity', (t) => {
  const video = videoTrack();
  const late = videoPackets(video, { from: 100, to: 101 }).map(withNal);
  const ts = mux([...late, ...videoPackets(video, { to: 1 }).map(withNal)]);
  t.deepEqual(analyse(ts).errors, []);
  const flagged = Array.from({ length: ts.length / 188 }, (_, i) => ts.subarray(i * 188, (i + 1) * 188)).filter(
    (packet) => (packet.readUInt8(3) & 0x20) !== 0 && packet.readUInt8(4) > 0 && (packet.readUInt8(5) & 0x80) !== 0,
  );
  t.is(flagged.length, 1);
  t.true(
    analyse(ts)
      .pcrs.get(0x100)
      ?.includes(OFFSET - 18_000),
  );
});

test('a change of tracks is a new version of the PMT, with the PIDs of those that stay', (t) => {
  const video = videoTrack();
  const audio = audioTrack();
  const muxer = new TsMuxer([video]);
  const before = mux(videoPackets(video, { to: 1 }).map(withNal), muxer);
  muxer.setTracks([audio, video]);
  const after = mux(
    interleaved(videoPackets(video, { from: 1, to: 2 }).map(withNal), audioPackets(audio, { from: 1, to: 2 })),
    muxer,
  );
  muxer.setTracks([audio, video]);
  const analysis = analyse(Buffer.concat([before, after, muxer.tables()]));
  right(t, analysis);
  t.deepEqual([...new Set(analysis.pmts.map(({ version }) => version))], [0, 1]);
  t.deepEqual(
    [...(analysis.pmts.at(-1)?.streams ?? [])],
    [
      [0x101, 0x0f],
      [0x100, 0x1b],
    ],
  );
  t.is(analyse(after).pats[0], 0);
});

test('tracks that leave and return have the PIDs that they had, and their counters go on', (t) => {
  const video = videoTrack();
  const [one, two] = [audioTrack({ id: 1 }), audioTrack({ id: 3 })];
  const id3 = dataTrack({ id: 7 });
  const all = [video, one, two, id3];
  const muxer = new TsMuxer(all);
  const bytes: Buffer[] = [];
  for (const [at, tracks] of [
    all,
    [two],
    [video, two, dataTrack({ id: 9 })],
    [video, two],
    [id3, two, one, video],
  ].entries()) {
    muxer.setTracks(tracks);
    const span = { from: at, to: at + 1 };
    const of = (track: Track): Packet[] => {
      if (track.type === 'video') return videoPackets(track, span).map(withNal);
      return track.type === 'audio' ? audioPackets(track, span) : [eventPacket(track as DataTrack, at * 90_000, 'ID3')];
    };
    bytes.push(mux(interleaved(...tracks.map(of)), muxer));
  }
  const { errors, pmts } = analyse(Buffer.concat(bytes));
  t.deepEqual(
    errors.filter((error) => error.includes('counter')),
    [],
  );
  const told = pmts.map(({ streams }) => [...streams.keys()].join(' '));
  t.deepEqual(
    told.filter((pids, at) => pids !== told[at - 1]),
    ['256 257 258 259', '258', '256 258 259', '256 258', '259 258 257 256'],
  );
});

test('a recording in several files has the same PIDs in all of them', (t) => {
  const tracks = [videoTrack(), audioTrack()];
  const container = containerOf('a.ts');
  const pids = [tracks, tracks.slice(1), tracks].map((some) => {
    const file = container.open(some, (fault) => t.fail(fault), undefined);
    const media = interleaved(
      ...some.map((track) =>
        track.type === 'video'
          ? videoPackets(track as VideoTrack, { to: 1 }).map(withNal)
          : audioPackets(track as AudioTrack, { to: 1 }),
      ),
    );
    const bytes = [...media.flatMap((packet) => file.write(packet)), ...file.end().tail];
    return [...(analyse(Buffer.concat(bytes)).pmts[0]?.streams.keys() ?? [])];
  });
  t.deepEqual(pids, [[0x100, 0x101], [0x101], [0x100, 0x101]]);
});

test('a configuration that changes with a key frame puts its own parameter sets in front, and the PMT stays', (t) => {
  const one = videoTrack();
  const other = videoTrack({
    config: Buffer.from(
      '0164001fffe1001a6764001facd9405005bb0110000003001000000303c0f183196001000668ebe3cb22c0fdf8f800',
      'hex',
    ),
  });
  const muxer = new TsMuxer([one]);
  const ts = mux([...videoPackets(one, { to: 1 }), ...videoPackets(other, { from: 1, to: 2 })].map(withNal), muxer);
  const analysis = analyse(ts);
  right(t, analysis);
  t.is(new Set(analysis.pmts.map(({ version }) => version)).size, 1);
  const sets = (analysis.pes.get(0x100) ?? [])
    .filter(({ random }) => random)
    .map(({ payload }) => (splitAnnexB(payload)[1] as Buffer)[1]);
  t.deepEqual(sets, [0x42, 0x64]);
});

test('languages, ID3 and SCTE-35 are described in the tables and carried as they are', (t) => {
  const audio = audioTrack({ language: 'ko' });
  const id3: DataTrack = {
    id: 7,
    name: 'id3',
    type: 'data',
    codec: 'ID3v2',
    timebase: { num: 1, den: 1000 },
    bypass: true,
  };
  const cues: DataTrack = { ...id3, id: 8, codec: 'SCTE35' };
  const tag = Buffer.from('ID3\u0004\0\0\0\0\0\0');
  // splice_null of SCTE 35
  const section = Buffer.from('fc301100000000000000fffff0000000007a4fbfff', 'hex').subarray(0, 20);
  const muxer = new TsMuxer([audio, id3, cues]);
  const data = [
    { track: id3, dts: 500, pts: 500, duration: 0, key: true, data: tag },
    { track: cues, dts: 600, pts: 600, duration: 0, key: true, data: section },
  ];
  const analysis = analyse(mux(interleaved(audioPackets(audio, { to: 1 }), data), muxer));
  t.deepEqual(
    analysis.errors.filter((error) => !error.includes('table 252')),
    [],
  );
  const pmt = analysis.pmts[0]?.bytes ?? Buffer.alloc(0);
  for (const piece of ['kor\0', 'CUEI', 'ID3 \u00ffID3 ']) t.true(pmt.includes(Buffer.from(piece, 'latin1')), piece);
  t.deepEqual([...(analysis.pmts[0]?.streams.values() ?? [])], [0x0f, 0x15, 0x86]);
  t.deepEqual(
    analysis.pes.get(0x101)?.map(({ payload, pts, streamId }) => [payload.toString('latin1'), pts, streamId]),
    [[tag.toString('latin1'), 45_000 + OFFSET, 0xbd]],
  );
  t.deepEqual(
    analysis.sections.get(0x102)?.map((each) => each.toString('hex')),
    [section.toString('hex')],
  );
});

test('tracks of KLV have streams of their own, which ffprobe knows', (t) => {
  const video = videoTrack();
  const [one, two] = [7, 8].map((id) => dataTrack({ id, codec: 'KLV' })) as [DataTrack, DataTrack];
  const muxer = new TsMuxer([video, one, two]);
  const klv = (track: DataTrack, text: string, pts: number): Packet => ({
    ...eventPacket(track, pts, ''),
    data: klvItem(text),
  });
  const items = [klv(one, 'one', 9000), klv(two, 'two', 18_000), klv(one, 'three', 27_000)];
  const ts = mux(interleaved(videoPackets(video, { to: 1 }).map(withNal), items), muxer);
  const analysis = analyse(ts);
  right(t, analysis);
  t.deepEqual([...(analysis.pmts[0]?.streams.values() ?? [])], [0x1b, 6, 6]);
  t.deepEqual(
    analysis.pes.get(0x101)?.map(({ payload, pts, streamId }) => [payload, pts, streamId]),
    [
      [klvItem('one'), 9000 + OFFSET, 0xbd],
      [klvItem('three'), 27_000 + OFFSET, 0xbd],
    ],
  );
  t.deepEqual(analysis.pes.get(0x102)?.[0]?.payload, klvItem('two'));
  const entries = ['-v', 'error', '-show_entries', 'stream=index,codec_name', '-of', 'csv=p=0', '-'];
  const probed = execFileSync('ffprobe', entries, { input: ts }).toString();
  t.is(new Set(probed.match(/\d,klv/g)).size, 2, probed);
});

test('all tracks of events of a codec are one stream, which goes on when one of them has gone', (t) => {
  const audio = audioTrack();
  const all = dataTrack({ id: 7, timebase: { num: 1, den: 1000 } });
  const some: DataTrack = { ...all, id: 8, target: 'audio' };
  const muxer = new TsMuxer([audio, all]);
  const event = (track: DataTrack, pts: number): Packet => eventPacket(track, pts, `ID3 at ${pts}`);
  const [first, second] = [audioPackets(audio, { to: 0.4 }), audioPackets(audio, { from: 0.4, to: 1 })];
  const bytes = [mux([...first, event(all, 400)], muxer)];
  muxer.addTracks([all, some]);
  t.deepEqual(muxer.omitted, []);
  bytes.push(mux([event(some, 401), ...second, event(all, 1000)], muxer));
  muxer.setTracks([audio, some]);
  bytes.push(mux([event(some, 1001)], muxer));
  const analysis = analyse(Buffer.concat(bytes));
  t.deepEqual(analysis.errors, []);
  t.true(analysis.pmts.every(({ streams }) => [...streams.values()].join() === '15,21'));
  t.deepEqual(
    analysis.pes.get(0x101)?.map(({ payload }) => payload.toString()),
    ['ID3 at 400', 'ID3 at 401', 'ID3 at 1000', 'ID3 at 1001'],
  );
});

test('tracks that MPEG-TS cannot carry are left out by name', (t) => {
  const vp8 = videoTrack({ id: 3, codec: 'VP8', config: undefined });
  const odd = audioTrack({ id: 4, config: Buffer.of(0xff, 0xff) });
  const audio = audioTrack();
  const muxer = new TsMuxer([vp8, odd, audio]);
  t.deepEqual(
    muxer.omitted.map(({ track }) => track),
    [vp8, odd],
  );
  t.is(muxer.write(videoPackets(vp8, { to: 1 })[0] as Packet).length, 0);
  t.true(muxer.write(audioPackets(audio, { to: 1 })[0] as Packet).length > 0);
});

test('more tracks than a PMT has room for are left out', (t) => {
  const tracks = Array.from({ length: 300 }, (_, id) => audioTrack({ id, language: 'eng' }));
  const muxer = new TsMuxer(tracks);
  t.is(muxer.omitted.length + (analyse(muxer.tables()).pmts[0]?.streams.size ?? 0), 300);
});

test('several frames of a sound share a PES packet, and a plan can be written later', (t) => {
  const audio = audioTrack();
  const packets = audioPackets(audio, { to: 1 });
  const muxer = new TsMuxer([audio]);
  const [first] = packets as [Packet];
  const planned = muxer.plan({ ...first, data: packets.map(({ data }) => data) });
  const next = muxer.write({ ...first, dts: 48_000, pts: 48_000 });
  const out = Buffer.alloc(planned?.bytes ?? 0);
  t.is(planned && writePlanned(planned, out, 0), out.length);
  const analysis = analyse(Buffer.concat([out, next]));
  t.deepEqual(analysis.errors, []);
  const [pes] = analysis.pes.get(0x100) ?? [];
  t.deepEqual(
    [...adtsFrames(pes?.payload ?? Buffer.alloc(0))].map(({ payload }) => payload),
    packets.map(({ data }) => data),
  );
});

test('a frame that MPEG-TS cannot carry is refused, and the next ones are right', (t) => {
  const audio = audioTrack();
  const muxer = new TsMuxer([audio]);
  const [first, second] = audioPackets(audio, { to: 1 }) as [Packet, Packet];
  const before = muxer.write(first);
  t.throws(() => muxer.write({ ...second, data: Buffer.alloc(9000) }), { instanceOf: BitstreamError });
  t.deepEqual(analyse(Buffer.concat([before, muxer.write(second)])).errors, []);
});

test('packets of any size and time make a right stream', (t) => {
  const next = seeded(7);
  const random = { integer: (from: number, to: number) => from + Math.floor(next() * (to - from)) };
  for (let round = 0; round < 60; round++) {
    const video = videoTrack();
    const audio = audioTrack();
    const muxer = new TsMuxer([video, audio]);
    let time = random.integer(0, 2 ** 34);
    const parts: Buffer[] = [];
    for (let i = 0; i < 60; i++) {
      const track = random.integer(0, 2) === 0 ? video : audio;
      time += random.integer(0, 9000);
      const dts = rescale(time, VIDEO_TIMEBASE, track.timebase);
      const nal = Buffer.alloc(random.integer(2, random.integer(0, 8) === 0 ? 7000 : 400), 0x41);
      const packet = {
        track,
        dts,
        pts: dts + (track === video ? random.integer(0, 9000) : 0),
        duration: 0,
        key: track === audio || random.integer(0, 9) === 0,
        data: nal,
      };
      parts.push(muxer.write(track === video ? withNal(packet) : packet));
    }
    t.deepEqual(analyse(Buffer.concat(parts)).errors, []);
  }
});
