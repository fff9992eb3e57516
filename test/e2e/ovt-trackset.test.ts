import test from 'ava';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const PROFILES = `<OutputProfiles><OutputProfile>
  <Name>p</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>
  <Encodes>
    <Video><Name>picture</Name><Bypass>true</Bypass></Video>
    <Audio><Name>sound</Name><Bypass>true</Bypass></Audio>
  </Encodes>
  <TrackSet><Name>radio</Name><Audio><Name>sound</Name></Audio></TrackSet>
  <TrackSet><Name>silent</Name><Video><Name>picture</Name></Video><Video><Name>uhd</Name></Video></TrackSet>
  <TrackSet><Name>strict</Name><Strict>true</Strict><Video><Name>picture</Name></Video><Video><Name>uhd</Name></Video></TrackSet>
</OutputProfile></OutputProfiles>`;

const STREAMS = '/v1/vhosts/default/apps/app/streams';

test('one server pulls from another the tracks of a trackset, and plays them', async (t) => {
  const [origin, edge] = await Promise.all([
    Kiln.start({ ovt: true, application: PROFILES }),
    Kiln.start({ ovt: true }),
  ]);
  t.teardown(() => Promise.all([origin.stop(), edge.stop()]));
  const encoder = new Program('ffmpeg', [
    ...patternArguments({ size: '160x90', rate: 15, gop: 15 }),
    '-f',
    'flv',
    origin.rtmpUrl('talk'),
  ]);
  t.teardown(() => encoder.stop());
  await origin.liveStream('talk');

  const properties = { retryCount: 3, noInputFailoverTimeoutMs: 30_000 };
  const pull = (name: string, trackset: string) =>
    edge.api(STREAMS, 'POST', { name, urls: [origin.ovtUrl(`talk/${trackset}`)], properties });
  for (const [trackset, types] of [
    ['radio', ['Audio']],
    ['silent', ['Video']],
  ] as const) {
    t.is((await pull(trackset, trackset)).status, 201);
    const { input } = await edge.liveStream(trackset);
    t.deepEqual(
      input.tracks.map(({ type }) => type),
      [...types],
    );
    await until('it is played', async () => {
      const answer = await fetch(edge.httpUrl(`/app/${trackset}/llhls.m3u8`));
      return answer.status === 200 && (await answer.text()).includes('.m3u8');
    });
  }
  for (const trackset of ['strict', 'none']) {
    t.is((await pull(trackset, trackset)).status, 502);
    t.is((await edge.stream(trackset)).status, 404);
  }
  await until('its log says why', () => edge.log.includes('no such trackset (none)'));
});
