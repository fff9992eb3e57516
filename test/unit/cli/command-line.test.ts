import test from 'ava';
import { readArguments } from '../../../src/cli/command-line.ts';

test('options and their defaults', (t) => {
  t.like(readArguments([], {}), { config: 'config/Server.xml', demo: false, check: false });
  t.like(readArguments(['--config', 'a.xml', '--demo'], {}), { config: 'a.xml', demo: true });
  t.throws(() => readArguments(['--nonsense'], {}), { message: /--nonsense/ });
});

test('options that npm has taken for itself are explained', (t) => {
  const start = { npm_lifecycle_event: 'start' };
  const meant = (args: string[], env: NodeJS.ProcessEnv): string =>
    t.throws(() => readArguments(args, { ...start, ...env }))?.message ?? '';
  t.is(
    meant([], { npm_config_demo: 'true' }),
    'npm has taken --demo for itself. Options of Kiln follow a "--": npm start -- --demo',
  );
  // npm start --config a.xml --check
  const both = { npm_config_config: 'true', npm_config_check: 'true' };
  t.is(
    meant(['a.xml'], both),
    'npm has taken --config and --check for itself. Options of Kiln follow a "--": npm start -- --config a.xml --check',
  );
  t.true(meant([], { npm_config_config: 'a.xml' }).endsWith('npm start -- --config a.xml'));
  t.like(readArguments(['--demo'], start), { demo: true });
  t.like(readArguments([], { npm_config_demo: 'true' }), { demo: false }, 'not what ran this');
});
