import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import { codedPackets, ivfPackets, tracksOf } from '../../support/media/coded-packets.ts';
import { cuePacket, interleaved, subtitleTrack } from '../../support/media/packets.ts';
import { openRecords, recordSpec, shifted } from '../../support/recording/recordings.ts';

const GOP = 25;
const H264 = codedPackets({ video: { codec: 'H264', gop: GOP }, audio: 'AAC', seconds: 6 });
const VP8 = ivfPackets('VP8', { seconds: 6, gop: GOP });
const ENGLISH = subtitleTrack({ isDefault: true });
const KOREAN = subtitleTrack({ id: 769, publicName: 'a/b 한국어', language: 'ko' });
const TRACKS = [ENGLISH, KOREAN];

/** A cue from one time to another, in seconds of the media. */
function cue(track: typeof ENGLISH, from: number, to: number, text: string, settings = ''): Packet {
  return { ...cuePacket(track, from * 1000, text, settings), duration: (to - from) * 1000 };
}

/** Cues of a WebVTT file, as ffmpeg reads them: times in seconds. */
function cuesOf(path: string): string[] {
  const args = ['-v', 'error', '-show_entries', 'packet=pts_time,duration_time', '-of', 'csv=p=0', path];
  const times = execFileSync('ffprobe', args)
    .toString()
    .split('\n')
    .filter((line) => /^\d/.test(line));
  const text = execFileSync('ffmpeg', ['-v', 'error', '-i', path, '-f', 'webvtt', '-']).toString();
  const texts = text.split('\n\n').slice(1);
  return times.map((time, index) => {
    const [from, length] = time.split(',').map(Number) as [number, number];
    const shown = texts[index]?.trim().split('\n').slice(1).join('|');
    return `${from.toFixed(1)}-${(from + length).toFixed(1)} ${shown}`;
  });
}

for (const extension of ['mp4', 'ts', 'webm']) {
  test.serial(`a recording of ${extension} has the subtitles of each file beside it`, async (t) => {
    const media = extension === 'webm' ? VP8 : H264;
    const { records, application, stop, publish, files, root, handed } = await openRecords(t);
    const spec = recordSpec({ interval: 2000, filePath: `\${Sequence}.${extension}`, infoPath: 'i.xml' });
    await records.create(application, 'r', spec);
    const output = await publish([...tracksOf(media), ...TRACKS], 'r');
    const begin = Math.min(...media.map(({ pts, track }) => pts / track.timebase.den));
    const sent = interleaved(media, [
      cue(ENGLISH, begin + 0.5, begin + 1, 'one', 'line:80%'),
      cue(ENGLISH, begin + 1.5, begin + 4.6, 'two <i>files</i>\nmore'),
      cue(ENGLISH, begin + 5, begin + 60, 'to the end'),
      cue(KOREAN, begin + 2.5, begin + 3, '안녕'),
    ]);
    for (const packet of shifted(sent, 500)) output.write(packet);
    await stop('r');
    const name = (index: number, label: string) => `${index}.${label}.vtt`;
    const expected = [0, 1, 2].flatMap((index) => [
      `${index}.${extension}`,
      name(index, 'English.en'),
      ...(index === 1 ? [name(index, 'a_b 한국어.ko')] : []),
    ]);
    t.deepEqual(files(), [...expected, 'i.xml'].sort());
    const read = (index: number, label = 'English.en') => cuesOf(join(root, name(index, label)));
    t.deepEqual(read(0), ['0.5-1.0 one', '1.5-2.0 two <i>files</i>|more']);
    t.deepEqual(read(1), ['0.0-2.0 two <i>files</i>|more']);
    t.deepEqual(read(1, 'a_b 한국어.ko'), ['0.5-1.0 안녕']);
    t.deepEqual(read(2), ['0.0-0.6 two <i>files</i>|more', '1.0-2.0 to the end']);
    t.true(readFileSync(join(root, '0.English.en.vtt'), 'utf8').includes('line:80%'));
    const [, second] = handed.toSorted((one, other) => one.sequence - other.sequence);
    t.deepEqual(
      second?.subtitles?.map(({ label, language, name: file }) => [label, language, file]),
      [
        ['English', 'en', '1.English.en.vtt'],
        ['a/b 한국어', 'ko', '1.a_b 한국어.ko.vtt'],
      ],
    );
    t.false(handed.some((file) => 'tracks' in file && file.tracks?.some(({ type }) => type === 'subtitle')));
  });
}

interface Stream {
  readonly codec_tag_string: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly disposition: Readonly<Record<string, number>>;
}

test.serial('ffprobe finds the subtitle tracks of a recorded MP4 file, and GStreamer reads them', async (t) => {
  const { records, application, stop, publish, root } = await openRecords(t);
  await records.create(application, 'r', recordSpec({ filePath: 'a.mp4' }));
  const output = await publish([...tracksOf(H264), ...TRACKS], 'r');
  for (const packet of interleaved(H264, [cue(ENGLISH, 1, 2.5, 'hello')])) output.write(packet);
  await stop('r');
  const path = join(root, 'a.mp4');
  const { streams } = JSON.parse(
    execFileSync('ffprobe', ['-v', 'error', '-show_streams', '-of', 'json', path]).toString(),
  ) as { streams: Stream[] };
  t.deepEqual(
    streams.slice(2).map(({ codec_tag_string: tag, tags, disposition }) => {
      return [tag, tags.language, tags.handler_name, disposition.default];
    }),
    [
      ['wvtt', 'eng', 'English', 1],
      ['wvtt', 'kor', 'a/b 한국어', 0],
    ],
  );
  const args = ['-q', '-m', 'filesrc', `location=${path}`, '!', 'qtdemux', 'name=d', 'd.subtitle_0', '!'];
  execFileSync('gst-launch-1.0', [...args, 'filesink', `location=${root}/cues`]);
  const said = readFileSync(join(root, 'cues'));
  t.true(said.includes('hello'));
});

test.serial(
  'a recording that begins while a text is shown has it, and one without texts has no WebVTT file',
  async (t) => {
    const { records, application, stop, publish, files, root } = await openRecords(t);
    const output = await publish([...tracksOf(H264), ...TRACKS]);
    const [first] = H264 as [Packet];
    const begin = first.pts / first.track.timebase.den;
    output.write(cue(ENGLISH, begin - 1, begin + 1, 'before'));
    output.write(cue(KOREAN, begin - 1, begin - 0.1, 'over'));
    await records.create(application, 'r', recordSpec({ filePath: 'a.ts', infoPath: 'i.xml' }));
    await records.create(
      application,
      'q',
      recordSpec({
        filePath: 'b.ts',
        infoPath: 'i.xml',
        stream: { name: 'stream', trackIds: [0, KOREAN.id], variantNames: [] },
      }),
    );
    await new Promise((resolve) => setImmediate(resolve));
    t.is(output.readers, 2);
    for (const packet of H264) output.write(packet);
    await Promise.all([stop('r'), stop('q')]);
    t.deepEqual(files(), ['a.English.en.vtt', 'a.ts', 'b.ts', 'i.xml']);
    t.deepEqual(cuesOf(join(root, 'a.English.en.vtt')), ['0.0-1.0 before']);
  },
);
