import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import type { Playlist, Rendition } from '../../../../../src/core/playlist.ts';
import type { Packet } from '../../../../../src/core/packet.ts';
import type { AudioTrack, MediaTrack, VideoTrack } from '../../../../../src/core/track.ts';
import { describeLanguage } from '../../../../../src/publishers/hls/master/language.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../../support/media/packets.ts';
import { construct608, constructs708, popOn, withCaptions } from '../../../../support/media/captions.ts';
import { until } from '../../../../support/time/until.ts';
import { checkMasterPlaylist } from '../../../../support/playlist-rules/master-rules.ts';
import { faults } from '../../../../support/playlist-rules/rules.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const LLHLS = { segmentDuration: 2, segmentCount: 5, chunkDuration: 0.5 };
const OPUS_CONFIG = Buffer.from('000201380000bb80000000', 'hex');
const TWENTY_MS = 0xfc;

const source = videoTrack({ id: 0, name: 'source', config: AVC_HIGH, width: 1280, height: 720 });
const small = videoTrack({ id: 1, name: 'small', bypass: false, width: 320, height: 180, bitrate: 300_000 });
const aac = (id: number, shape: Partial<AudioTrack> = {}) =>
  audioTrack({ id, name: 'aac', bypass: false, bitrate: 96_000, ...shape });
const opus = (id: number, shape: Partial<AudioTrack> = {}) =>
  audioTrack({ id, name: 'opus', codec: 'OPUS', config: OPUS_CONFIG, ...shape });

function playlist(...renditions: readonly Rendition[]): Playlist {
  return {
    name: 'ladder',
    fileName: 'ladder',
    renditions,
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: 0,
      enableTsPackaging: false,
    },
  };
}

function packets(track: MediaTrack, to: number, bytes = 100): Packet[] {
  if (track.type === 'video') return videoPackets(track, { to, gop: 60, bytes });
  if (track.codec === 'AAC') return audioPackets(track, { to });
  return Array.from({ length: to * 50 }, (_, index) => ({
    track,
    dts: index * 960,
    pts: index * 960,
    duration: 960,
    key: true,
    data: Buffer.of(TWENTY_MS, 1, 2),
  }));
}

const LADDER = playlist(
  { name: 'high', videoVariantName: 'source', audioVariantName: 'aac' },
  { name: 'low', videoVariantName: 'small', audioVariantName: 'aac' },
);

/** A stream of some tracks that has come to a media time, and the master playlist as hls-parser reads it. */
async function master(
  t: ExecutionContext,
  tracks: readonly MediaTrack[],
  wanted: Playlist | undefined,
  to = 7,
  bytes?: number,
) {
  const server = await openLlhls(t, { llhls: LLHLS, playlists: wanted === undefined ? [] : [wanted] });
  const { output } = server.goLive(tracks);
  for (const packet of interleaved(...tracks.map((track) => packets(track, to, bytes)))) output.write(packet);
  const url = `/app/stream/${wanted?.fileName ?? 'llhls'}.m3u8`;
  const read = async () => {
    const { body, statusCode } = await server.get(url);
    t.is(statusCode, 200);
    HLS.setOptions({ strictMode: true });
    const parsed = HLS.parse(body);
    if (!parsed.isMasterPlaylist) throw new Error('no master playlist');
    return { body, variants: parsed.variants };
  };
  return { ...server, output, url, read, ...(await read()) };
}

const lines = (body: string, tag: string) => body.split('\n').filter((line) => line.startsWith(tag));
const attribute = (line: string, name: string) =>
  new RegExp(`[:,]${name}=(?:"([^"]*)"|([^,]*))`)
    .exec(line)
    ?.slice(1)
    .find((one) => one !== undefined);
const idOf = (uri: string) => Number(uri.split('/').at(-1)?.split('_')[1]);

const CAPTIONS = Buffer.from('00000010 06 04 0b b500314741393403 41ff 8000 80'.replaceAll(' ', ''), 'hex');

test('captions are not announced until some have been seen: they may come later', async (t) => {
  const { body, output, read } = await master(t, [source, aac(2)], undefined);
  t.is(attribute(lines(body, '#EXT-X-STREAM-INF')[0] ?? '', 'CLOSED-CAPTIONS'), 'NONE');
  const [packet] = videoPackets(source, { from: 7, to: 7.1 });
  if (packet === undefined) throw new Error('no packet');
  output.write({ ...packet, data: Buffer.concat([CAPTIONS, packet.data]) });
  t.false((await read()).body.includes('CLOSED-CAPTIONS'));
});

test('captions are declared once they have come, with the label and language of their subtitles', async (t) => {
  const application = {
    name: 'app',
    type: 'live',
    publishers: { llhls: LLHLS },
    subtitles: { enable: true, rendition: [{ label: 'Deutsch "1"', language: 'de' }] },
    captions: { toWebVtt: [{ channel: 'CC1', label: 'Deutsch "1"' }] },
  };
  const server = await openLlhls(t, { vhost: { applications: [application] } });
  const { output } = server.goLive([source]);
  const write = (from: number, to: number, constructs: (index: number) => Buffer) => {
    for (const [index, packet] of videoPackets(source, { from, to, gop: 60 }).entries())
      output.write({ ...packet, data: withCaptions('H264', packet.data, constructs(index)) });
  };
  const pairs = popOn('GUTEN TAG');
  write(0, 6, (index) => construct608(pairs[index]));
  const { body } = await server.get('/app/stream/llhls.m3u8');
  t.deepEqual(lines(body, '#EXT-X-MEDIA:'), [
    '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="captions",NAME="Deutsch 1",DEFAULT=NO,AUTOSELECT=YES,LANGUAGE="de",INSTREAM-ID="CC1"',
  ]);
  t.is(attribute(lines(body, '#EXT-X-STREAM-INF')[0] ?? '', 'CLOSED-CAPTIONS'), 'captions');
  t.regex(body, /#EXT-X-VERSION:6\n/);
  write(6, 8, () => constructs708(1, Buffer.from('98383c69711f1141', 'hex')));
  const later = (await server.get('/app/stream/llhls.m3u8')).body;
  t.deepEqual(
    lines(later, '#EXT-X-MEDIA:').map((line) => [attribute(line, 'NAME'), attribute(line, 'INSTREAM-ID')]),
    [
      ['Deutsch 1', 'CC1'],
      ['SERVICE1', 'SERVICE1'],
    ],
  );
  t.regex(later, /#EXT-X-VERSION:7\n/);
  t.deepEqual(faults(checkMasterPlaylist(later)), []);
});

test('all variants say that they have no captions where one has none, audio alone as well (RFC 8216bis 4.4.6.2)', async (t) => {
  const mixed = playlist(
    { name: 'high', videoVariantName: 'source', audioVariantName: 'aac' },
    { name: 'sound', audioVariantName: 'aac' },
  );
  const captions = async (tracks: MediaTrack[], wanted: Playlist) =>
    lines((await master(t, tracks, wanted)).body, '#EXT-X-STREAM-INF').map((line) =>
      attribute(line, 'CLOSED-CAPTIONS'),
    );
  t.deepEqual(await captions([source, aac(2)], mixed), ['NONE', 'NONE']);
  t.deepEqual(await captions([aac(2)], playlist({ name: 'sound', audioVariantName: 'aac' })), [undefined]);
});

test('a rendition that picks one of several tracks of a variant has that one alone', async (t) => {
  const picked = playlist(
    { name: 'first', videoVariantName: 'source', audioVariantName: 'aac', audioIndex: 0 },
    { name: 'second', videoVariantName: 'source', audioVariantName: 'aac', audioIndex: 1 },
    { name: 'none', videoVariantName: 'source', audioVariantName: 'aac', audioIndex: 2 },
  );
  const { variants, body } = await master(t, [source, aac(2), aac(3)], picked);
  t.deepEqual(
    variants.map(({ audio }) => audio.map(({ uri }) => idOf(uri ?? ''))),
    [[2], [3]],
  );
  t.deepEqual(
    lines(body, '#EXT-X-MEDIA').map((line) => attribute(line, 'GROUP-ID')),
    ['audio_aac', 'audio_aac_2'],
  );
});

test('a master playlist has one variant for each rendition, each with the audio it names', async (t) => {
  const { variants, body } = await master(t, [source, small, aac(2)], LADDER);
  t.deepEqual(
    variants.map(({ uri }) => idOf(uri)),
    [0, 1],
  );
  t.deepEqual(
    variants.map(({ codecs }) => codecs),
    ['avc1.64001f,mp4a.40.2', 'avc1.42c01e,mp4a.40.2'],
  );
  t.deepEqual(
    variants.map(({ resolution }) => resolution),
    [
      { width: 1280, height: 720 },
      { width: 320, height: 180 },
    ],
  );
  t.deepEqual(
    variants.map(({ audio }) => audio.map(({ uri }) => idOf(uri ?? ''))),
    [[2], [2]],
  );
  t.is(lines(body, '#EXT-X-MEDIA').length, 1);
});

test('two languages are one group; a second sound of a language is not chosen by a player itself', async (t) => {
  const tracks = [
    source,
    aac(2, { language: 'eng' }),
    aac(3, { language: 'ko' }),
    aac(4, { language: 'ko', characteristics: 'public.accessibility.describes-video' }),
    aac(5, { language: 'ko' }),
  ];
  const { body, variants } = await master(t, tracks, LADDER);
  const media = lines(body, '#EXT-X-MEDIA');
  const told = (name: string) => media.map((line) => attribute(line, name));
  t.deepEqual(told('NAME'), ['English', '한국어', '한국어 2', '한국어 3']);
  t.deepEqual(told('LANGUAGE'), ['en', 'ko', 'ko', 'ko']);
  t.deepEqual(told('DEFAULT'), ['YES', 'NO', 'NO', 'NO']);
  t.deepEqual(told('AUTOSELECT'), ['YES', 'YES', 'YES', 'NO']);
  t.deepEqual(told('CHARACTERISTICS'), [undefined, undefined, 'public.accessibility.describes-video', undefined]);
  t.deepEqual(told('CHANNELS'), ['2', '2', '2', '2']);
  t.deepEqual(new Set(told('GROUP-ID')), new Set(['audio_aac']));
  t.is(variants.length, 1);
  t.is(variants[0]?.codecs, 'avc1.64001f,mp4a.40.2');
});

test('a sound goes by the name that it was given, and otherwise by its language', async (t) => {
  const tracks = [source, aac(2, { language: 'en' }), aac(3, { language: 'en', publicName: 'Comment"ary' })];
  const { body } = await master(t, tracks, LADDER);
  t.deepEqual(
    lines(body, '#EXT-X-MEDIA').map((line) => attribute(line, 'NAME')),
    ['English', 'Commentary'],
  );
});

test('renditions with different sounds have groups of their own, whose members are alike', async (t) => {
  const wanted = playlist(
    { videoVariantName: 'source', audioVariantName: 'aac' },
    { videoVariantName: 'source', audioVariantName: 'opus' },
    { audioVariantName: 'opus' },
  );
  const languages = ['de', 'fr'];
  const tracks = [
    source,
    ...languages.map((language, at) => aac(2 + at, { language })),
    ...languages.map((language, at) => opus(4 + at, { language })),
  ];
  const { body, variants } = await master(t, tracks, wanted);
  const shape = (group: string) =>
    lines(body, '#EXT-X-MEDIA')
      .filter((line) => line.includes(`"${group}"`))
      .map((line) => line.replace(/GROUP-ID="[^"]*"|URI="[^"]*"/g, ''));
  t.is(shape('audio_aac').length, 2);
  t.deepEqual(shape('audio_aac'), shape('audio_opus'));
  t.deepEqual(
    variants.map(({ codecs }) => codecs),
    ['avc1.64001f,mp4a.40.2', 'avc1.64001f,opus', 'opus'],
  );
  t.deepEqual(
    variants.map(({ uri }) => idOf(uri)),
    [0, 0, 4],
  );
  t.deepEqual(
    variants.map(({ audio }) => audio.map(({ uri }) => idOf(uri ?? ''))),
    [
      [2, 3],
      [4, 5],
      [4, 5],
    ],
  );
});

test('a rendition whose track is missing is left out, and equal ones are written once', async (t) => {
  const wanted = playlist(
    { name: 'gone', videoVariantName: 'none', audioVariantName: 'aac' },
    { name: 'silent', videoVariantName: 'source', audioVariantName: 'none' },
    { name: 'one', videoVariantName: 'small', audioVariantName: 'aac' },
    { name: 'same', videoVariantName: 'small', audioVariantName: 'aac' },
    {},
  );
  const { variants } = await master(t, [source, small, aac(2)], wanted);
  t.deepEqual(
    variants.map(({ uri }) => idOf(uri)),
    [1],
  );
});

test('tracks of renditions play where none of these is whole', async (t) => {
  const silent = await master(t, [source, small], LADDER);
  t.deepEqual(
    silent.variants.map(({ uri }) => idOf(uri)),
    [0, 1],
  );
  t.notRegex(silent.body, /AUDIO/);
  const blind = await master(t, [aac(2)], LADDER);
  t.deepEqual(
    blind.variants.map(({ uri, codecs }) => [idOf(uri), codecs]),
    [[2, 'mp4a.40.2']],
  );
});

test('the default playlist takes the AAC sound, Opus only where there is no other', async (t) => {
  const both = await master(t, [source, small, opus(2), aac(3)], undefined);
  t.deepEqual(
    both.variants.map(({ audio }) => audio.map(({ uri }) => idOf(uri ?? ''))),
    [[3], [3]],
  );
  t.notRegex(both.body, /opus/);
  const only = await master(t, [source, opus(2)], undefined);
  t.deepEqual(
    only.variants.map(({ codecs }) => codecs),
    ['avc1.64001f,opus'],
  );
});

test('a rendition that no playlist names is not packaged, until one names it; WebRTC has its own', async (t) => {
  const { output, get, children, publisher } = await master(t, [source, opus(2), aac(3)], undefined);
  const packaged = async (id: number) => {
    const [one = ''] = await children();
    const { statusCode } = await get(one.replace(/chunklist_\d+/, `chunklist_${id}`));
    return statusCode === 200;
  };
  const chunklists = async () => Promise.all((await children()).map(async (url) => (await get(url)).body));
  output.addPlaylist({ ...playlist({ audioVariantName: 'opus' }), name: 'webrtc_default', fileName: 'webrtc_default' });
  t.is((await get('/app/stream/webrtc_default.m3u8')).statusCode, 404);
  t.false(await packaged(2));
  for (const body of await chunklists()) t.notRegex(body, /chunklist_2_/);
  output.addPlaylist(playlist({ videoVariantName: 'source', audioVariantName: 'opus' }));
  const held = get('/app/stream/ladder.m3u8');
  await until('it is held', () => publisher.waiting === 1);
  for (const packet of interleaved(...[source, opus(2), aac(3)].map((track) => packets(track, 12)))) {
    const { den } = (packet.track as MediaTrack).timebase;
    if (packet.dts >= 7 * den)
      output.write({ ...packet, track: output.tracks.find(({ id }) => id === packet.track.id) ?? packet.track });
  }
  t.is((await held).statusCode, 200);
  const [sound = '', picture = ''] = await children('/app/stream/ladder.m3u8');
  t.is(idOf(sound), 2);
  t.regex((await get(picture)).body, /REPORT:URI="chunklist_2_/);
  t.regex((await get(sound)).body, /REPORT:URI="chunklist_0_/);
  t.notRegex((await get(sound)).body, /REPORT:URI="chunklist_3_/, 'they stand in no master playlist together');
});

test('bandwidths: no less than declared before there is a segment, then what the window holds', async (t) => {
  const early = await master(t, [small, aac(2)], LADDER, 1);
  t.true((early.variants[0]?.bandwidth ?? 0) >= 396_000);
  t.true((early.variants[0]?.averageBandwidth ?? 0) > 0);
  const bytes = 5000;
  const fat = await master(t, [small, aac(2)], LADDER, 9, bytes);
  const [variant] = fat.variants;
  const media = bytes * 8 * 30;
  t.true((variant?.averageBandwidth ?? 0) > media && (variant?.averageBandwidth ?? 0) < media * 1.1);
  t.true(
    (variant?.bandwidth ?? 0) >= (variant?.averageBandwidth ?? Infinity) &&
      (variant?.bandwidth ?? 0) < media * 1.1 + 96_000,
  );
});

test('a short segment of nothing but a key frame is no peak', async (t) => {
  const server = await openLlhls(t, {
    llhls: { ...LLHLS, segmentDuration: 6 },
    playlists: [playlist({ videoVariantName: 'source' })],
  });
  const { output } = server.goLive([source]);
  for (const packet of videoPackets(source, { to: 20, gop: 30, bytes: 1000 })) {
    output.write(packet.dts === 0 ? { ...packet, data: Buffer.alloc(1_000_000) } : packet);
  }
  const { body } = await server.get('/app/stream/ladder.m3u8');
  const [line = ''] = lines(body, '#EXT-X-STREAM-INF');
  // with what comes until half a target is over
  t.true(Number(attribute(line, 'BANDWIDTH')) < 8_300_000 / 3, line);
});

test.serial('a rendition that comes later is waited for when the stream starts, not for ever', async (t) => {
  virtualTime(t);
  const server = await openLlhls(t, { llhls: LLHLS, playlists: [LADDER] });
  const { output } = server.goLive([source, small, aac(2)]);
  for (const packet of interleaved(packets(source, 3), packets(aac(2), 3))) output.write(packet);
  await delay(5000);
  const early = await server.get('/app/stream/ladder.m3u8');
  t.is(early.statusCode, 200);
  t.is(lines(early.body, '#EXT-X-STREAM-INF').length, 1);
  const soon = await server.get('/app/stream/ladder.m3u8');
  t.is(soon.body.length, early.body.length);
});

test('a rendition that is away for longer than the window is not offered, and is when it is back', async (t) => {
  const { output, read, variants } = await master(t, [source, small, aac(2)], LADDER);
  t.is(variants.length, 2);
  const write = (tracks: readonly MediaTrack[], from: number, to: number) => {
    for (const packet of interleaved(...tracks.map((track) => packets(track, to)))) {
      if (packet.dts / (packet.track as MediaTrack).timebase.den >= from) output.write(packet);
    }
  };
  write([source, aac(2)], 7, 40);
  t.deepEqual(
    (await read()).variants.map(({ uri }) => idOf(uri)),
    [0],
  );
  write([source, small, aac(2)], 40, 44);
  t.deepEqual(
    (await read()).variants.map(({ uri }) => idOf(uri)),
    [0, 1],
  );
});

test('a request for a playlist wakes encoders that rest, and gets their renditions when they are back', async (t) => {
  const { output, get, url, read, publisher } = await master(t, [source, small, aac(2)], LADDER);
  const write = (tracks: readonly MediaTrack[], from: number, to: number) => {
    for (const packet of interleaved(...tracks.map((track) => packets(track, to)))) {
      if (packet.dts / (packet.track as MediaTrack).timebase.den >= from) output.write(packet);
    }
  };
  write([source], 9, 60);
  let wanted = 0;
  output.on('wanted', () => {
    wanted++;
    output.setResting(false);
  });
  output.setResting(true);
  const held = [get(url), get(url)];
  await until('they are held', () => publisher.waiting === 2);
  t.is(wanted, 1);
  write([source, small, aac(2)], 60, 66);
  for (const answer of held) t.is((await answer).statusCode, 200);
  const { body } = await read();
  t.is(lines(body, '#EXT-X-STREAM-INF').length, 2);
  t.is(lines(body, '#EXT-X-MEDIA').length, 1);
});

test('a held request for a segment that becomes a gap is answered with the playlist', async (t) => {
  const { output, get, url } = await master(t, [source, small, aac(2)], LADDER);
  const children = [...(await get(url)).body.matchAll(/^([^#\n].*)$/gm)].map(([, name]) => `/app/stream/${name}`);
  const held = get(`${children[1]}?_HLS_msn=4&_HLS_part=0`);
  for (const packet of packets(source, 20)) if (packet.dts >= 7 * 90_000) output.write(packet);
  const { statusCode, body } = await held;
  t.is(statusCode, 200);
  t.regex(body, /#EXT-X-GAP\n#EXTINF:2\.000000,\nseg_1_4_video/);
});

test('rendition reports cover every other rendition of the stream', async (t) => {
  const { get, url } = await master(t, [source, small, aac(2), aac(3, { language: 'de' })], LADDER);
  const names = [...(await get(url)).body.matchAll(/URI="([^"]+)"|^([^#\n].*)$/gm)].map(
    ([, quoted, line]) => quoted ?? line,
  );
  for (const name of names) {
    const { body } = await get(`/app/stream/${name}`);
    const reports = lines(body, '#EXT-X-RENDITION-REPORT').map((line) => idOf(attribute(line, 'URI') ?? ''));
    t.deepEqual(
      reports.toSorted(),
      [0, 1, 2, 3].filter((id) => id !== idOf(name ?? '')),
    );
  }
});

test('different codecs are variants beside each other', async (t) => {
  const av1 = videoTrack({
    id: 5,
    name: 'small',
    codec: 'AV1',
    bypass: false,
    config: Buffer.from('81050c000a0b00000024cf7f0dbffe3004', 'hex'),
  } satisfies Partial<VideoTrack>);
  const { variants } = await master(t, [source, av1, aac(2)], LADDER);
  t.deepEqual(
    variants.map(({ codecs }) => codecs?.split('.')[0]),
    ['avc1', 'av01'],
  );
});

test('languages by the tag and the name of RFC 5646, whatever the source calls them', (t) => {
  t.deepEqual(describeLanguage('deu'), { tag: 'de', name: 'Deutsch' });
  t.deepEqual(describeLanguage('pt-br'), { tag: 'pt-BR', name: 'português (Brasil)' });
  t.deepEqual(describeLanguage('Stadium, left'), { name: 'Stadium, left' });
  for (const none of [undefined, '', 'und', 'mul']) t.deepEqual(describeLanguage(none), { name: 'Audio' });
});

test('a resolution is the size that video is shown in', async (t) => {
  const wide = { ...source, width: 720, height: 576, sar: { num: 64, den: 45 } };
  const { body } = await master(t, [wide, aac(2)], undefined);
  t.is(attribute(lines(body, '#EXT-X-STREAM-INF')[0] ?? '', 'RESOLUTION'), '1024x576');
});

test('the video range of every variant is given where one is not SDR (RFC 8216bis 4.4.6.2)', async (t) => {
  const ranges = async (...tracks: MediaTrack[]) => {
    const { body } = await master(t, [...tracks, aac(2)], LADDER);
    return lines(body, '#EXT-X-STREAM-INF').map((line) => attribute(line, 'VIDEO-RANGE'));
  };
  const colour = { primaries: 9, transfer: 16, matrix: 9, fullRange: false };
  const usual = { primaries: 1, transfer: 1, matrix: 1, fullRange: false };
  t.deepEqual(await ranges({ ...source, colour }, { ...small, colour: usual }), ['PQ', 'SDR']);
  t.deepEqual(await ranges({ ...source, colour: { ...colour, transfer: 18 } }, small), ['HLG', 'SDR']);
  t.deepEqual(await ranges({ ...source, colour: usual }, small), [undefined, undefined]);
});

test('segments of open GOPs are not said to be independent (RFC 8216bis 4.4.2.1 and 4.4.4.9)', async (t) => {
  const server = await openLlhls(t, { llhls: LLHLS, playlists: [] });
  const { output } = server.goLive([source, aac(2)]);
  const media = interleaved(packets(source, 7), packets(aac(2), 7));
  const write = (key: Packet['key'], seconds: number) => {
    for (const packet of media) {
      const shift = Math.round((seconds * packet.track.timebase.den) / packet.track.timebase.num);
      const isKey = packet.key && packet.track.type === 'video';
      output.write({ ...packet, dts: packet.dts + shift, pts: packet.pts + shift, key: isKey ? key : packet.key });
    }
  };
  const read = async () => {
    const { body } = await server.get('/app/stream/llhls.m3u8');
    const uri = body.split('\n').find((line) => !line.startsWith('#') && line.includes('chunklist_0')) ?? '';
    return [body, (await server.get(`/app/stream/${uri}`)).body] as const;
  };
  write('open', 0);
  const [master, video] = await read();
  t.false(master.includes('INDEPENDENT-SEGMENTS'));
  t.true(video.includes('#EXT-X-PART:'));
  t.false(video.includes('INDEPENDENT'));
  for (const seconds of [8, 16, 24]) write(true, seconds);
  t.true((await read())[0].includes('#EXT-X-INDEPENDENT-SEGMENTS'));
});
