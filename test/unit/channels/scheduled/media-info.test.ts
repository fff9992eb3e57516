import test from 'ava';
import { readMediaInfo } from '../../../../src/channels/scheduled/media-info.ts';

const MP4 = `Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'file:/proc/self/fd/0':
  Metadata:
    title           : a line
                    :   Stream #0:9: Video: h264
    Stream #0       : a tag
  Duration: 01:02:03.45, start: 0.000000, bitrate: 376 kb/s
  Stream #0:0[0x1](und): Video: h264 (High) (avc1 / 0x31637661), yuv420p(progressive), 320x180, 25 fps (default)
    Metadata:
      handler_name    : VideoHandler
  Stream #0:1[0x2](eng): Audio: aac (LC) (mp4a / 0x6134706D), 48000 Hz, stereo, fltp, 127 kb/s (default)
  Stream #0:2[0x3](und): Audio: pcm_s16le, 48000 Hz
  Stream #0:3[0x102]: Data: timed_id3 (ID3  / 0x20334449)
  Stream #0:4[0x103]: Data: scte_35
Output #0, null, to 'pipe:':
  Stream #0:0(und): Video: vp9
`;

test('streams, languages and length are read of what ffmpeg says, and nothing of metadata', (t) => {
  t.deepEqual(readMediaInfo(MP4), {
    format: 'mov,mp4,m4a,3gp,3g2,mj2',
    length: 3_723_450,
    video: { index: 0, codec: 'H264' },
    audio: [
      { index: 1, codec: 'AAC', language: 'eng' },
      { index: 2, codec: undefined },
    ],
    data: [{ index: 3, codec: 'ID3v2' }],
  });
});

test('a turned picture has to be encoded, and a cover is no video', (t) => {
  const turned = MP4.replace(/(handler_name.*)\n/, '$1\n      displaymatrix: rotation of -90.00 degrees\n');
  t.deepEqual(readMediaInfo(turned)?.video, { index: 0, codec: undefined });
  t.is(readMediaInfo(MP4.replace('25 fps (default)', '25 fps (attached pic)'))?.video, undefined);
});

test('a media length that is missing, or only estimated, is unknown', (t) => {
  t.is(readMediaInfo(MP4.replace(/Duration: [\d:.]+/, 'Duration: N/A'))?.length, undefined);
  const warned = `[mp3] Estimating duration from bitrate, this may be inaccurate\n${MP4}`;
  t.is(readMediaInfo(warned)?.length, undefined);
});

test('text that describes no media is not read as media information', (t) => {
  t.is(readMediaInfo(''), undefined);
  t.is(readMediaInfo('file:/proc/self/fd/0: Invalid data found when processing input'), undefined);
});
