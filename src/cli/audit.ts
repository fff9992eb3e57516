#!/usr/bin/env node
import { createReadStream } from 'node:fs';
import { argv, env, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { commandName } from './command-name.ts';
import { verify } from '../management/audit/verify.ts';

const USAGE = `Checks that no line of audit logs was altered, removed or moved.

  npm run audit -- [--key KEY ...] FILE ...

  FILE       written by Managers/API/AuditLog; several of one log, the oldest first
  --key KEY  Key of the AuditLog, and former ones; by default the variable KILN_AUDIT_KEY
  --help     print this

Exit code 0 when the chain is whole, 1 when it is broken, 2 when it cannot be checked.`;
const COMMAND = commandName(argv, 'audit');
const EXIT_BROKEN = 1;
const EXIT_USAGE = 2;
/** Longer than any line of an audit log. */
const MAX_LINE = 1024 * 1024;

try {
  process.exitCode = await run(argv.slice(2));
} catch (error) {
  stderr.write(`${(error as Error).message}\n${COMMAND} --help lists the options.\n`);
  process.exitCode = EXIT_USAGE;
}

async function run(args: string[]): Promise<number> {
  const options = { key: { type: 'string', multiple: true }, help: { type: 'boolean', default: false } } as const;
  const { values, positionals: files } = parseArgs({ args, options, allowPositionals: true });
  if (values.help) {
    stdout.write(`${USAGE.replace('npm run audit --', COMMAND)}\n`);
    return 0;
  }
  const keys = (values.key ?? [env.KILN_AUDIT_KEY ?? '']).filter((key) => key !== '');
  if (keys.length === 0) throw new Error('--key or KILN_AUDIT_KEY is needed');
  if (files.length === 0) throw new Error('a FILE is needed');
  const {
    broken,
    lines: count,
    notes,
  } = await verify(
    files.map((name) => ({ name, lines: linesOf(name) })),
    keys,
  );
  for (const note of notes) stdout.write(`note: ${note}\n`);
  if (broken === undefined) {
    stdout.write(`whole: ${count} ${count === 1 ? 'line is as it was' : 'lines are as they were'} written\n`);
    return 0;
  }
  stdout.write(
    `BROKEN at ${broken.file}:${broken.line}: ${broken.reason}. ${count} lines before it are as they were written\n`,
  );
  return EXIT_BROKEN;
}

async function* linesOf(name: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(name, 'utf8') as AsyncIterable<string>) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE)
      throw new Error(`${name} is no audit log: it has lines of more than a million characters`);
    yield* lines;
  }
  if (rest !== '') yield rest;
}
