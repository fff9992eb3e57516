import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { AAC, BYPASS, ladderXml, LONG_LLHLS } from '../support/media/ladder-config.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO } from '../support/webrtc/offers.ts';
import { rawOvt } from '../support/ovt/raw-ovt.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { until } from '../support/time/until.ts';
import { writeScript } from '../support/programs/script.ts';

const IMAGE = '<Image><Name>jpeg</Name><Codec>jpeg</Codec><Framerate>5</Framerate><Width>64</Width></Image>';

/** A server whose encoders do not start until `release` is called, with a publisher of `live`. */
async function start(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-starting-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const halt = join(folder, 'halt');
  const path = writeScript(join(folder, 'ffmpeg'), `while [ -e ${halt} ]; do sleep 0.05; done\nexec ffmpeg "$@"`);
  const kiln = await Kiln.start({
    env: { KILN_FFMPEG: path },
    llhls: LONG_LLHLS,
    hls: '<SegmentDuration>1</SegmentDuration>',
    publishers: '<Thumbnail/>',
    ovt: true,
    srt: {},
    application: ladderXml([BYPASS, AAC, IMAGE]),
  });
  t.teardown(() => kiln.stop());
  // with which it finds out what its ffmpeg can do, before that cannot start any more
  await until('its codecs', async () => (await kiln.api('/v2/internals/codecs')).status === 200);
  await writeFile(halt, '');
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '160x90', bitrate: '200k', gop: 10 });
  t.teardown(() => publisher.stop());
  await until('it is published', async () => (await kiln.stream('live')).status === 200);
  return { kiln, release: () => rm(halt) };
}

const SDP = { method: 'POST', headers: { 'content-type': 'application/sdp' }, body: offerOf([OPUS_AUDIO, H264_VIDEO]) };

test('viewers of every protocol that come while encoders start are held, and get the stream when it is there', async (t) => {
  const { kiln, release } = await start(t);
  const settled: string[] = [];
  const watch = <T>(name: string, answer: Promise<T>): Promise<T> => answer.finally(() => settled.push(name));

  const ask = (stream: string) => ({
    llhls: fetch(kiln.httpUrl(`/app/${stream}/llhls.m3u8`)),
    hls: fetch(kiln.httpUrl(`/app/${stream}/ts:playlist.m3u8`)),
    thumbnail: fetch(kiln.httpUrl(`/app/${stream}/thumb.jpg`)),
    whep: fetch(kiln.httpUrl(`/app/${stream}?direction=whep`), SDP),
  });
  // asked again below, where nobody is to be held for longer than the server does
  for (const [name, answer] of Object.entries(ask('nothing')))
    t.is((await answer).status, name === 'whep' ? 409 : 404, name);
  const edge = await rawOvt(t, kiln.ports.ovt as number);
  const signalling = await SignallingClient.open(kiln.httpUrl('/app/live').replace('http', 'ws'));
  t.teardown(() => signalling.socket.terminate());
  const viewer = await new SrtCaller(t).call(kiln.ports.srtPlay as number, { streamId: 'default/app/live' });
  t.is(viewer.refused, 0);
  const held = Object.fromEntries(Object.entries(ask('live')).map(([name, answer]) => [name, watch(name, answer)]));
  signalling.send({ command: 'request_offer' });
  const offer = watch('signalling', signalling.command('offer'));
  const described = watch('ovt', edge.ask('describe', kiln.ovtUrl('live')));

  const refused = await Promise.all(
    Object.values(ask('nothing')).map(async (answer) => [(await answer).status, settled.length]),
  );
  t.deepEqual(
    refused,
    [404, 404, 404, 409].map((status) => [status, 0]),
    'what does not exist is refused at once',
  );
  t.deepEqual(settled, []);
  t.true(await viewer.connected());

  await release();
  for (const [name, answer] of Object.entries(held)) {
    const { status } = await answer;
    t.true([200, 201].includes(status), `${name}: ${status}`);
  }
  t.is((await offer).code, 200);
  t.is((await described).code, 200);
  await until('the SRT viewer gets the stream', async () => (await viewer.receive()) > 0);
});

test('viewers who go away while they wait are let go of', async (t) => {
  const { kiln, release } = await start(t);
  const gone = new AbortController();
  const answers = ['llhls.m3u8', 'thumb.jpg'].map((file) =>
    fetch(kiln.httpUrl(`/app/live/${file}`), { signal: gone.signal }).catch((error: Error) => error.name),
  );
  const edge = await rawOvt(t, kiln.ports.ovt as number);
  void edge.ask('describe', kiln.ovtUrl('live')).catch(() => {});
  const viewer = await new SrtCaller(t).call(kiln.ports.srtPlay as number, { streamId: 'default/app/live' });
  t.is((await fetch(kiln.httpUrl('/app/nothing/llhls.m3u8'))).status, 404, 'the others have been asked for before');
  gone.abort();
  edge.socket.destroy();
  await viewer.close();
  t.deepEqual(await Promise.all(answers), ['AbortError', 'AbortError']);
  await release();
  await kiln.liveStream('live');
  const picture = await until('who comes later gets it', async () => {
    const answer = await fetch(kiln.httpUrl('/app/live/thumb.jpg'));
    return answer.status === 200 && answer;
  });
  t.is(picture.headers.get('content-type'), 'image/jpeg');
  t.notRegex(kiln.log, /"level":50/);
});
