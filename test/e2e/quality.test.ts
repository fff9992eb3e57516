import test from 'ava';
import type { QualitySummary } from '../../src/quality/summary.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, TOKEN } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const kiln = await Kiln.start({
  llhls: '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>',
});
const browser = await launchBrowser();
const publish = (stream: string) =>
  publishPattern(kiln.rtmpUrl(stream), { size: '160x90', rate: 10, gop: 20, bitrate: '100k' });
const publisher = publish('live');
const masterOf = (stream: string): string => kiln.httpUrl(`/app/${stream}/llhls.m3u8`);
const untilPlays = (stream: string) =>
  until('the stream plays', async () => (await fetch(masterOf(stream))).status === 200);

await untilPlays('live');

test.after.always(async () => {
  await publisher.stop();
  await browser.close();
  await kiln.stop();
});

const MASTER = masterOf('live');

async function quality(stream = 'live'): Promise<QualitySummary | undefined> {
  const { body } = await kiln.api<QualitySummary[]>(`/v1/cluster/quality?stream=${stream}`);
  return body.response[0];
}

function counted(row: QualitySummary | undefined, name: string): number {
  return row?.renditions.find(({ rendition }) => rendition === name)?.reports ?? 0;
}

const MODES: Readonly<Record<string, object>> = {
  'version 1 in the query': {},
  'version 1 in the header': { useHeaders: true },
  'version 2 in the query': { version: 2 },
  'version 2 in the header': { version: 2, useHeaders: true },
};
for (const [mode, cmcd] of Object.entries(MODES)) {
  test.serial(`hls.js reports by CMCD of ${mode}`, async (t) => {
    const before = await quality();
    const player = await PlayerPage.open(browser, 'hls', kiln.httpUrl('/readyz'));
    t.teardown(() => player.page.close());
    await player.play(MASTER, { cmcd });
    await player.plays(3, 60_000);
    const row = await until('reports about both tracks', async () => {
      const now = await quality();
      const both = ['video_0', 'audio_2'].every((name) => counted(now, name) > counted(before, name) + 3);
      return both && now;
    });
    // one variant: the best there is; hls.js says what that is in version 2
    if ('version' in cmcd) t.true((row.bitrateRatio?.average ?? 0) > 0.9);
    t.true((row.bufferSeconds?.count ?? 0) > (before?.bufferSeconds?.count ?? 0));
    t.true((row.playbackRate?.count ?? 0) > (before?.playbackRate?.count ?? 0));
    t.is(row.nodes.length, 1);
  });
}

/** Has hls.js send events to the session that its playlists name. */
const SEND_EVENTS = `
  const create = window.Hls;
  window.Hls = function (config) {
    const hls = new create(config);
    hls.config.cmcd.loader = async (request) => {
      const [level] = hls.levels ?? [];
      return level === undefined ? { status: 503 } : fetch(new URL('cmcd', level.url[0]), request);
    };
    return hls;
  };`;

test.serial('hls.js reports events to the URL of its session', async (t) => {
  // the players before may have reported what is not counted yet
  const other = publish('events');
  t.teardown(() => other.stop());
  await untilPlays('events');
  const player = await PlayerPage.open(browser, 'hls', kiln.httpUrl('/readyz'));
  t.teardown(() => player.page.close());
  await player.page.evaluate(`(() => {${SEND_EVENTS}})()`);
  const eventTargets = [{ url: kiln.httpUrl('/'), events: ['ps', 't'], interval: 1 }];
  const answers: number[] = [];
  player.page.on('response', (response) => {
    if (response.request().method() === 'POST') answers.push(response.status());
  });
  await player.play(masterOf('events'), { cmcd: { version: 2, includeKeys: [], eventTargets } });
  await player.plays(3, 60_000);
  const row = await until('events were counted', async () => {
    const now = await quality('events');
    return (now?.reports ?? 0) > 3 && now;
  });
  t.deepEqual([...new Set(answers)], [200]);
  t.deepEqual(row.renditions, [], 'events are about no rendition');
});

test.serial('Shaka Player reports its latency', async (t) => {
  const player = await PlayerPage.open(browser, 'shaka', kiln.httpUrl('/readyz'));
  t.teardown(() => player.page.close());
  await player.page.evaluate(`(() => {
    const { Player } = shaka;
    shaka.Player = class extends Player {
      constructor() {
        super();
        this.configure({ cmcd: { enabled: true, version: 2 } });
      }
    };
    Object.assign(shaka.Player, Player);
  })()`);
  await player.play(MASTER, {});
  await player.plays(3, 60_000);
  const row = await until('a report with a latency', async () => {
    const now = await quality();
    return now?.latencySeconds !== undefined && now;
  });
  const { average = 0 } = row.latencySeconds ?? {};
  t.true(average > 0.2 && average < 120, `${average}`);
});

test.serial('metrics have what players report', async (t) => {
  const answer = await fetch(`http://${kiln.address}:${kiln.ports.api}/metrics`, {
    headers: { authorization: `Basic ${Buffer.from(TOKEN).toString('base64')}` },
  });
  const text = await answer.text();
  const labels = '{vhost="default",application="app",stream="live"}';
  t.regex(text, new RegExp(`^kiln_player_reports_total${labels} [1-9]`, 'm'));
  t.regex(text, /^kiln_player_reports_received_total\{result="event"\} [1-9]/m);
  t.notRegex(text, /result="malformed"/);
});
