import { parseArgs } from 'node:util';

export const USAGE = `Kiln, a live media server.

  npm start -- [options]   in a checkout
  kiln [options]           from the npm package

  --config FILE   Server.xml to run (default config/Server.xml)
  --demo          also publish a built-in test pattern and print the page to open
  --check         validate the configuration and exit
  --log-format F  text or json (default: what KILN_LOG says)
  --version       print the version and exit
  --help          print this and exit

Environment:

  KILN_ACCESS_TOKEN   credentials of the management API (default: random, printed at the start)
  KILN_LOG            text or json (default: text on a terminal, json otherwise)
  KILN_LOG_LEVEL      trace, debug, info, warn, error, fatal or silent (default info)
  KILN_FFMPEG         the ffmpeg to use`;

const OPTIONS = {
  config: { type: 'string', default: 'config/Server.xml' },
  demo: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  'log-format': { type: 'string' },
  version: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** @throws Error that names the fault in the arguments */
export function readArguments(args: readonly string[], env: NodeJS.ProcessEnv) {
  const meant = takenByNpm(args, env);
  if (meant.length > 0) {
    throw new Error(
      `npm has taken ${meant.map(([option]) => option).join(' and ')} for itself. ` +
        `Options of Kiln follow a "--": npm start -- ${meant.flat().join(' ')}`,
    );
  }
  return parseArgs({ args: [...args], options: OPTIONS }).values;
}

/** Options of `npm start --demo` without `--`: npm takes them, and passes them on in the environment only. */
function takenByNpm(args: readonly string[], env: NodeJS.ProcessEnv): string[][] {
  if (env.npm_lifecycle_event !== 'start') return [];
  const flags = (['demo', 'check'] as const).filter((name) => env[`npm_config_${name}`] === 'true');
  const config = env.npm_config_config;
  // npm passes the file as an argument of its own unless it follows a "="
  const file = config === 'true' ? args.find((argument) => !argument.startsWith('-')) : config;
  return [...(config === undefined ? [] : [['--config', file ?? 'FILE']]), ...flags.map((name) => [`--${name}`])];
}
