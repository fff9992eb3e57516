import test from 'ava';
import { readExtraOptions } from '../../../../src/transcode/encoders/extra-options.ts';
import { FFMPEGS } from '../../../support/media/ffmpeg.ts';
import { PICTURE, recordSource, videoJob } from '../command-support.ts';
import { commandFor, runWork } from '../../../unit/transcode/run-command.ts';

test('options are pairs between colons, and blanks around them are none of them', (t) => {
  t.deepEqual(readExtraOptions('aq-mode=2: deblock = -1,-1 :ref=3:no-psy', 'libx264'), {
    allowed: [
      ['aq-mode', '2'],
      ['deblock', '-1,-1'],
      ['ref', '3'],
      ['no-psy', '1'],
    ],
    refused: [],
  });
  t.deepEqual(readExtraOptions(undefined, 'libx264'), { allowed: [], refused: [] });
  t.deepEqual(readExtraOptions(' :: ', 'libx264'), { allowed: [], refused: [] });
});

test('extra options that do not belong to an encoder are refused by name', (t) => {
  t.deepEqual(readExtraOptions('aq-mode=2:row-mt=1', 'libx264').refused, ['row-mt']);
  t.deepEqual(readExtraOptions('row-mt=1:aq-mode=2', 'libvpx-vp9').refused, []);
  t.deepEqual(readExtraOptions('aq-mode=2', 'mjpeg').refused, ['aq-mode']);
  t.deepEqual(readExtraOptions('aq-mode=2', 'constructor').refused, ['aq-mode']);
});

const HOSTILE = [
  'stats=/tmp/x',
  'log-file=/tmp/x',
  'dump-yuv=/tmp/x',
  'qpfile=/etc/passwd',
  'cqmfile=/etc/passwd',
  'keyint=5',
  'scenecut=40',
  'open-gop=1',
  'intra-refresh=1',
  'rc-lookahead=250',
  'bframes=16',
  'threads=100000',
  'fps=1000',
  'force-cfr=0',
  'opencl=1',
  'aq-mode=/etc/passwd',
  'aq-mode=$(id)',
  'aq-mode=1;2',
  'aq-mode="1"',
  'aq-mode=1\n2',
  'aq-mode=1 -f flv rtmp://host/x',
  'aq-mode=1=2',
  '-y',
  '-i /etc/passwd',
  'movie=/etc/passwd',
  '[in]null[out]',
  '__proto__=1',
  `ref=${'9'.repeat(100)}`,
  'ref=\0',
];

test('extra options name no file, filter or other option, and change neither key frames nor timestamps', async (t) => {
  const plain = await commandFor('ffmpeg', { tracks: [PICTURE], jobs: [videoJob()] });
  for (const extraOptions of [...HOSTILE, HOSTILE.join(':')]) {
    const args = await commandFor('ffmpeg', { tracks: [PICTURE], jobs: [videoJob({ extraOptions })] });
    t.deepEqual(args, plain, extraOptions);
    t.true(readExtraOptions(extraOptions, 'libx264').refused.length > 0, extraOptions);
  }
  const [long = ''] = readExtraOptions(`${'x'.repeat(1000)}=1`, 'libx264').refused;
  t.true(long.length < 50);
});

for (const [name, ffmpeg] of FFMPEGS) {
  test.serial(`${name}: allowed options reach each encoder`, async (t) => {
    const source = await recordSource({ seconds: 1 });
    const jobs = [
      videoJob({ extraOptions: 'ref=2:aq-mode=2:deblock=-1,-1:no-psy' }),
      videoJob({ codec: 'H265', modules: 'x265', extraOptions: 'aq-mode=1:ref=2' }),
      videoJob({ codec: 'VP8', extraOptions: 'noise-sensitivity=1:sharpness=2' }),
      videoJob({ codec: 'VP9', extraOptions: 'aq-mode=3:tile-columns=1' }),
      videoJob({ codec: 'AV1', modules: 'libaom', extraOptions: 'aq-mode=3:enable-cdef=0' }),
      videoJob({ codec: 'AV1', modules: 'svtav1', extraOptions: 'tile-columns=1' }),
    ];
    const { outputs, stderr, code } = await runWork(ffmpeg, source, { tracks: [PICTURE], jobs });
    t.is(code, 0, stderr);
    t.is(stderr, '');
    t.true(outputs.every(({ times }) => times.length === 30));
    // x264 writes its settings into its first frame
    const said = outputs[0]?.frames[0]?.data.toString('latin1') ?? '';
    t.regex(said, /ref=2 .*deblock=1:-1:-1 .*psy=0 .*aq=2/);
  });
}
