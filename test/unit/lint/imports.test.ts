import test from 'ava';
import { faults, imports } from '../../lint/imports.ts';

const files = (sources: Record<string, string>): Map<string, string> => new Map(Object.entries(sources));

test('every form of import is seen', (t) => {
  const source = `
    import a from './a.ts';
    import type { B } from './b.ts';
    import c, { type D } from './c.ts';
    import * as e from './e.ts';
    import {
      f,
      g,
    } from './f.ts';
    import './h.ts';
    export { i } from './i.ts';
    export * from './j.ts';
    export type { K } from './k.ts';
    const l = await import('./l.ts');
    type M = import('./m.ts').M;
  `;
  const names = (typeOnly: boolean) =>
    imports(source)
      .filter((found) => found.typeOnly === typeOnly)
      .map((found) => found.specifier.slice(2, -3));
  t.deepEqual(names(true), ['b', 'k']);
  t.deepEqual(names(false), ['a', 'c', 'e', 'f', 'h', 'i', 'j', 'l', 'm']);
});

test('text that only looks like an import is ignored', (t) => {
  const source = `
    export const from = 'x';
    export function read() { return "import { y } from 'y'"; }
    // import { z } from './z.ts';
  `;
  t.deepEqual(imports(source), []);
});

test('imports that follow the direction pass', (t) => {
  t.deepEqual(
    faults(
      files({
        'src/codecs/bits.ts': '',
        'src/config/model.ts': "import { Bits } from '../codecs/bits.ts';",
        'src/channels/files/channel-files.ts': "import { check } from '../scheduled/check.ts';",
        'src/core/stream.ts':
          "import { BitReader } from '../codecs/bits.ts';\nimport type { A } from '../config/model.ts';",
        'src/api/app.ts': "import { Stream } from '../core/stream.ts';\nimport { openCluster } from '#cluster';",
        'src/server/server.ts': "import { app } from '../api/app.ts';\nimport { summary } from './summary.ts';",
        'src/server/summary.ts': '',
        'cluster/index.ts': "import './types.ts';",
      }),
    ),
    [],
  );
});

for (const [from, to] of [
  ['src/core/stream.ts', 'src/api/app.ts'],
  ['src/codecs/bits.ts', 'src/errors.ts'],
  ['src/protocols/tcp.ts', 'src/config/model.ts'],
  ['src/errors.ts', 'src/core/stream.ts'],
  ['src/containers/flv.ts', 'src/protocols/rtmp/message.ts'],
  ['src/publishers/hls/publisher.ts', 'src/providers/rtmp/provider.ts'],
  ['src/publishers/hls/package/package.ts', 'src/publishers/hls/local/packaged-stream.ts'],
  ['src/channels/scheduled/kind.ts', 'src/channels/channels.ts'],
  ['src/web/pages.ts', 'src/server/server.ts'],
  ['src/novelty/thing.ts', 'src/core/stream.ts'],
  ['src/server/server.ts', 'cluster/index.ts'],
  ['cluster/index.ts', 'src/log/log.ts'],
] as const) {
  test(`${from} may not import ${to}`, (t) => {
    const up = '../'.repeat(from.split('/').length - 1);
    for (const statement of [`import { x } from '${up}${to}';`, `import type { X } from '${up}${to}';`]) {
      const found = faults(files({ [from]: statement, [to]: '' }));
      t.is(found.length, 1);
      t.true(found[0]?.startsWith(`${from} imports ${to}: `));
    }
  });
}

test('a cycle is named by its files', (t) => {
  t.deepEqual(
    faults(
      files({
        'src/core/a.ts': "import './b.ts';",
        'src/core/b.ts': "import { type C } from './c.ts';",
        'src/core/c.ts': "import './a.ts';",
      }),
    ),
    ['import cycle: src/core/a.ts -> src/core/b.ts -> src/core/c.ts -> src/core/a.ts'],
  );
});

test('a parent and its child may name each other', (t) => {
  t.deepEqual(
    faults(
      files({
        'src/core/parent.ts': "import { Child } from './child.ts';",
        'src/core/child.ts': "import type { Parent } from './parent.ts';",
      }),
    ),
    [],
  );
});
