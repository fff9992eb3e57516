import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { Kiln } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

/** Commands that a reader can type as they are: they run here, page by page, against one server with one publisher. */
const RUNNABLE = /^```sh run\n([^]*?)^```$/gm;
const ROOT = join(import.meta.dirname, '../..');
const TOKEN = 'kiln:secret';

/** Calls of the API that are not run, by what they need. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'docs/cluster.md': 'several nodes: test/cluster/ does the same',
  'docs/configure.md': 'certificates: test/api/certificates.test.ts does the same',
  'docs/pull.md': 'other servers: test/e2e/pull-failures.test.ts does the same',
};

const PRELUDE = `
set -euo pipefail
curl() {
  command curl --silent --show-error --fail-with-body --max-time 60 "$@" || { echo " is answered to: curl $*" >&2; exit 1; }
}
`;

const pages = globSync(['README.md', 'docs/*.md'], { cwd: ROOT }).toSorted();
const text = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
const commandsOf = (page: string): string => [...text(page).matchAll(RUNNABLE)].map(([, block]) => block).join('');
const folder = mkdtempSync(join(tmpdir(), 'kiln-documents-'));
const film = join(folder, 'film.mp4');

let kiln: Kiln;
let publisher: ChildProcess | undefined;
let over = false;

/** Publishes `mystream` again and again: a page shows how to disconnect it. */
function publish(): void {
  if (over) return;
  const input = ['-hide_banner', '-loglevel', 'error', '-nostdin', '-re', '-stream_loop', '-1', '-i', film];
  publisher = spawn('ffmpeg', [...input, '-c', 'copy', '-f', 'flv', kiln.rtmpUrl('mystream')], { stdio: 'ignore' });
  publisher.once('exit', publish);
}

test.before(async () => {
  mkdirSync(join(folder, 'config/media'), { recursive: true });
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'];
  const coded = [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-pix_fmt',
    'yuv420p',
    '-g',
    '25',
    '-bf',
    '0',
    '-c:a',
    'aac',
  ];
  await promisify(execFile)('ffmpeg', ['-nostdin', ...picture, '-t', '4', ...coded, film]);
  kiln = await Kiln.start({
    env: { KILN_ACCESS_TOKEN: TOKEN },
    storage: join(folder, 'api_data'),
    providers: `<Schedule><MediaRootDir>${join(folder, 'config/media')}</MediaRootDir></Schedule><Multiplex/>`,
    publishers: '<FILE/><Push/>',
    application: /<Subtitles>[^]*?<\/Subtitles>/.exec(text('docs/subtitles.md'))?.[0] ?? '',
  });
  publish();
});

test.after.always(async () => {
  over = true;
  publisher?.kill('SIGKILL');
  await kiln?.stop();
  rmSync(folder, { recursive: true });
});

/** What a page calls the addresses of the reader's own server, and of others: this one is all of them. */
function here(commands: string): string {
  const { api, http, rtmp } = kiln.ports;
  return commands
    .replaceAll('localhost:8081', `127.0.0.1:${api}`)
    .replaceAll('localhost:3333', `127.0.0.1:${http}`)
    .replaceAll('rtmp://localhost/app/mystream', `rtmp://127.0.0.1:${rtmp}/app/film`)
    .replaceAll('rtmp://live.example.com/', `rtmp://127.0.0.1:${rtmp}/`)
    .replaceAll('/srv/vod', join(folder, 'vod'));
}

async function isLive(): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${kiln.ports.api}/v1/vhosts/default/apps/app/streams/mystream`, {
    headers: { authorization: `Basic ${Buffer.from(TOKEN).toString('base64')}` },
  });
  if (!answer.ok) return false;
  // the viewer that a page disconnects
  const viewer = await fetch(kiln.httpUrl('/app/mystream/llhls.m3u8?session=viewer-1'));
  return (await viewer.text()).includes('#EXT-X-STREAM-INF');
}

for (const page of pages.filter((one) => commandsOf(one) !== '')) {
  test.serial(`the commands of ${page} do what they say`, async (t) => {
    await until('mystream plays', isLive);
    const commands = here(commandsOf(page));
    // players ask for advertisements, not Kiln
    t.notRegex(commands, /(?<!ads\.)example\.com(?::|\/(?!.*names))/, 'nobody else is called');
    await t.notThrowsAsync(
      promisify(execFile)('bash', ['-c', `${PRELUDE}${commands}`], {
        cwd: folder,
        timeout: 2 * PATIENCE_MS,
        maxBuffer: 2 ** 26,
      }),
    );
  });
}

test('every documentation page that calls the API is run, or has a reason not to be', (t) => {
  const calling = pages.filter((page) => /^curl -u \$token/m.test(text(page)));
  t.true(calling.length > 8);
  for (const page of calling) t.not(commandsOf(page) === '', NOT_RUN[page] === undefined, page);
  // a block that is not run stands on no page of the others
  for (const page of calling.filter((one) => NOT_RUN[one] === undefined))
    t.is(
      [...text(page).matchAll(/^```sh\n[^]*?^```$/gm)].filter(([block]) => block.includes('curl -u')).length,
      0,
      page,
    );
});
