import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { sweepRuns } from '../../../../../src/publishers/hls/rewind/sweep-runs.ts';
import { Sweeps } from '../../../../../src/publishers/hls/rewind/sweeps.ts';
import { until } from '../../../../support/time/until.ts';

const SEGMENT = 'seg_0_1_video_abcdefgh_llhls.m4s';
const HOUR_MS = 3_600_000;

function open(t: ExecutionContext) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'kiln-sweeps-')));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const [root, documents] = [join(folder, 'root'), join(folder, 'documents')];
  mkdirSync(root);
  let lines = '';
  const log = pino({ level: 'warn' }, { write: (line) => void (lines += line) });
  const runs = new Map<string, string>();
  return {
    ...{ folder, root, documents, runs },
    log: () => lines,
    /** Files of a run whose last change was so many hours ago. @returns its folder */
    run: (path: string, hours: number): string => {
      const place = join(root, path);
      mkdirSync(place, { recursive: true });
      for (const name of [
        SEGMENT,
        'init_0_video_abcdefgh_llhls.m4s',
        'chunklist_0_video_abcdefgh_llhls.m3u8.1.journal',
      ])
        writeFileSync(join(place, name), name);
      writeFileSync(join(dirname(place), 'state.journal'), '{}\n');
      const at = (Date.now() - hours * HOUR_MS) / 1000;
      utimesSync(place, at, at);
      return place;
    },
    start: (kind = 'llhls'): Sweeps => {
      const sweeps = new Sweeps({ kind, folder: documents, openRuns: () => runs, log });
      t.teardown(() => sweeps.close());
      return sweeps;
    },
    names: (): string[] => (existsSync(documents) ? readdirSync(documents) : []),
  };
}

const placeOf = (root: string) => ({ root, vhost: 'v', app: 'a', kind: 'llhls', olderThanMs: HOUR_MS });

/** A place that a stream of another process has used, for an hour of DVR. */
async function used(node: ReturnType<typeof open>, kind = 'llhls'): Promise<void> {
  const sweeps = node.start(kind);
  const count = node.names().length;
  sweeps.use(node.root, { vhost: 'v', app: 'a', stream: 's', kind }, HOUR_MS);
  node.runs.set('s', 'open');
  await until('it is noted', () => Promise.resolve(node.names().length > count));
  await sweeps.close();
  node.runs.clear();
}

test('what a deleted application has left is removed after MaxDuration, and then forgotten', async (t) => {
  const node = open(t);
  const old = node.run('v/a/s/llhls/run00001', 3);
  const young = node.run('v/a/s/llhls/run00002', 1);
  await used(node);
  node.run('v/a/s/llhls/run00001', 3);
  const next = node.start();
  await until('the old run is gone', () => Promise.resolve(!existsSync(old)));
  await next.close();
  t.deepEqual(readdirSync(young).length, 3);
  t.is(node.names().length, 1);
  utimesSync(young, 0, 0);
  node.start();
  await until('it is forgotten', () => Promise.resolve(node.names().length === 0));
  t.deepEqual(readdirSync(node.root), []);
  t.is(node.log(), '');
});

test('a run that is packaged stays, however old it is', async (t) => {
  const node = open(t);
  const place = node.run('v/a/s/llhls/run00001', 30);
  const other = node.run('v/a/s/llhls/run00002', 30);
  node.runs.set('s', 'run00001');
  const sweeps = node.start();
  sweeps.use(node.root, { vhost: 'v', app: 'a', stream: 's', kind: 'llhls' }, HOUR_MS);
  await until('the other run is gone', () => Promise.resolve(!existsSync(other)));
  await sweeps.close();
  t.is(readdirSync(place).length, 3);
  t.true(existsSync(join(node.root, 'v/a/s/llhls/state.journal')));
  t.is(node.names().length, 1);
});

test('links and files of others stay', async (t) => {
  const node = open(t);
  const foreign = node.run('v/a/mine/llhls/run00001', 30);
  writeFileSync(join(foreign, 'notes.txt'), 'mine');
  utimesSync(foreign, 0, 0);
  const outside = node.run('../outside/s/llhls/run00001', 30);
  const [parent, stream, kind] = [join(node.folder, 'outside'), join(node.folder, 'outside/s'), dirname(outside)];
  mkdirSync(join(node.root, 'v/a/t'));
  symlinkSync(stream, join(node.root, 'v/a/link'));
  symlinkSync(kind, join(node.root, 'v/a/t/llhls'));
  mkdirSync(join(node.root, 'v/a/u/llhls'), { recursive: true });
  symlinkSync(outside, join(node.root, 'v/a/u/llhls/run00002'));
  mkdirSync(join(node.root, 'v/a/w/llhls/no-run'), { recursive: true });
  writeFileSync(join(node.root, 'v/a/w/llhls/no-run', SEGMENT), 'mine');
  const inKind = node.run('v/a/x/llhls/run00001', 30);
  writeFileSync(join(dirname(inKind), 'mine'), 'mine');
  t.false(await sweepRuns(placeOf(node.root), () => undefined));
  t.deepEqual(readdirSync(foreign), ['notes.txt']);
  t.is(readdirSync(outside).length, 3);
  t.deepEqual(readdirSync(join(node.root, 'v/a')).sort(), ['link', 'mine', 't', 'u', 'w', 'x']);
  t.deepEqual(readdirSync(join(node.root, 'v/a/w/llhls/no-run')), [SEGMENT]);
  t.deepEqual(readdirSync(dirname(inKind)), ['mine']);
  t.true(existsSync(parent));

  const linked = open(t);
  const elsewhere = linked.run('../outside/s/llhls/run00001', 30);
  mkdirSync(join(linked.root, 'v'));
  symlinkSync(join(linked.folder, 'outside'), join(linked.root, 'v/a'));
  t.true(await sweepRuns(placeOf(linked.root), () => undefined));
  t.is(readdirSync(elsewhere).length, 3);
});

test('a place is remembered for each kind of HLS, and while its disk is not there', async (t) => {
  const node = open(t);
  const [llhls, hls] = [node.run('v/a/s/llhls/run00001', 3), node.run('v/a/s/hlsv3/run00001', 1)];
  await used(node);
  await used(node, 'hlsv3');
  t.is(node.names().length, 2);
  rmSync(llhls, { recursive: true, force: true });
  utimesSync(hls, 0, 0);
  const sweeps = node.start();
  await until('one is forgotten', () => Promise.resolve(node.names().length === 1));
  await sweeps.close();
  t.true(existsSync(hls));
  rmSync(node.root, { recursive: true });
  const next = node.start('hlsv3');
  next.use(join(node.folder, 'none'), { vhost: 'v', app: 'b', stream: 's', kind: 'hlsv3' }, HOUR_MS);
  await until('another place is noted', () => Promise.resolve(node.names().length === 2));
  await next.close();
  t.is(node.names().length, 2);
});

test('a document that is damaged costs its own place', async (t) => {
  const node = open(t);
  const old = node.run('v/a/s/llhls/run00001', 3);
  await used(node);
  writeFileSync(join(node.documents, '0.json'), '{"root":');
  mkdirSync(old, { recursive: true });
  utimesSync(old, 0, 0);
  node.start();
  await until('the old run is gone', () => Promise.resolve(!existsSync(old)));
  t.regex(node.log(), /it is damaged/);
});
