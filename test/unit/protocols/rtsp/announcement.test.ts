import test, { type ExecutionContext } from 'ava';
import { readAnnouncement } from '../../../../src/protocols/rtsp/description.ts';
import { RtspError } from '../../../../src/protocols/rtsp/error.ts';
import { mutate } from '../../../soak/mutate.ts';
import { Random } from '../../../soak/random.ts';

/** As ffmpeg 5.1 announces a stream. */
const FFMPEG = [
  'v=0',
  'o=- 0 0 IN IP4 127.0.0.1',
  's=No Name',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'a=tool:libavformat 59.27.100',
  'm=video 0 RTP/AVP 96',
  'a=rtpmap:96 H264/90000',
  'a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LACtsCgMbwEQAAAwABAAADAB4PEiTg,aM4PLIA=; profile-level-id=42C00A',
  'a=control:streamid=0',
  'm=audio 0 RTP/AVP 97',
  'b=AS:69',
  'a=rtpmap:97 MPEG4-GENERIC/44100/1',
  'a=fmtp:97 profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3; config=120856E500',
  'a=control:streamid=1',
  '',
].join('\r\n');

test('the tracks that a client announces are all there, with what is supported of them', (t) => {
  const { control, tracks } = readAnnouncement(
    `${FFMPEG}m=application 0 RTP/AVP 98\r\na=rtpmap:98 vnd.onvif.metadata/90000\r\na=control:streamid=2\r\n`,
  );
  t.is(control, undefined);
  t.deepEqual(
    tracks.map((track) => [track.control, track.media?.format.encoding, track.codecs]),
    [
      ['streamid=0', 'H264', 'H264'],
      ['streamid=1', 'MPEG4-GENERIC', 'MPEG4-GENERIC'],
      ['streamid=2', undefined, 'vnd.onvif.metadata'],
    ],
  );
  t.like(tracks[1]?.media, { kind: 'audio', payloadType: 97, channels: 1, bitrate: 69_000 });
  t.is(tracks[0]?.media?.format.parameters['packetization-mode'], '1');
});

test('directions do not count: a client sends all that it announces', (t) => {
  for (const mark of ['sendonly', 'recvonly', 'sendrecv'])
    t.is(readAnnouncement(FFMPEG.replaceAll('a=control:', `a=${mark}\r\na=control:`)).tracks.length, 2);
  const audio = FFMPEG.replace('a=control:streamid=1', 'a=sendonly\r\na=control:streamid=1');
  t.true(readAnnouncement(audio).tracks.every(({ media }) => media !== undefined));
});

test('a description without anything supported is an error, and so is one that is too long', (t) => {
  for (const text of ['', 'v=0', 'HTTP/1.1 200 OK', FFMPEG.replaceAll('H264', 'X').replaceAll('MPEG4-GENERIC', 'Y')])
    t.throws(() => readAnnouncement(text), { instanceOf: RtspError });
  t.throws(() => readAnnouncement(FFMPEG + 'a=x\r\n'.repeat(1000)), { message: /too long/ });
});

test('broken and truncated descriptions are read or rejected', (t) => {
  const random = new Random(11);
  const whole = Buffer.from(FFMPEG);
  for (let length = 0; length < whole.length; length += 3) attempt(t, whole.subarray(0, length));
  for (let run = 0; run < 500; run++) attempt(t, mutate(whole, random, whole));
});

/** Whatever is read has a supported track; anything else is an RtspError. */
function attempt(t: ExecutionContext, bytes: Buffer): void {
  try {
    t.true(readAnnouncement(bytes.toString()).tracks.some(({ media }) => media !== undefined));
  } catch (error) {
    t.true(error instanceof RtspError, String(error));
  }
}
