#!/usr/bin/env node
import { argv, exit, stderr, stdout } from 'node:process';
import { commandName } from './command-name.ts';
import { checkUrl } from './sign-check.ts';
import { readSignArguments, SIGN_USAGE, type SignArguments } from './sign-arguments.ts';
import { signUrl } from '../access/policy/sign.ts';

const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;
const COMMAND = commandName(argv, 'sign');

function read(now: number): SignArguments {
  try {
    return readSignArguments(argv.slice(2), now);
  } catch (error) {
    stderr.write(`${(error as Error).message}\n${COMMAND} --help lists the options.\n`);
    exit(EXIT_USAGE);
  }
}

const now = Date.now();
const wanted = read(now);
if (wanted.what === 'help') {
  stdout.write(`${SIGN_USAGE.replaceAll('npm run sign --', COMMAND)}\n`);
} else if (wanted.what === 'sign') {
  stdout.write(`${signUrl(wanted.url, wanted.fields, wanted.signing)}\n`);
} else {
  const { isAccepted, lines } = checkUrl(wanted, now);
  stdout.write(`${lines.join('\n')}\n`);
  if (!isAccepted) process.exitCode = EXIT_REFUSED;
}
