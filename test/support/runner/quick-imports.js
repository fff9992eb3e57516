import { readFileSync } from 'node:fs';
import * as module from 'node:module';

/*
 * Loaded before each file of tests, and by every Node that tests start (NODE_OPTIONS, set in ava.config.js): most of what either
 * does at its start is to look for modules. `./x.ts` and `./x.mjs` are where they say and what they say, which Node
 * finds out by several system calls for each; one that is missing fails when it is read. Packages are taken from the files that
 * `packages.ts` has made of them, and files of tests get `ava` from few-at-once.ts. Everything else is Node's.
 */
const FEW_AT_ONCE = new URL('few-at-once.ts', import.meta.url).href;
const FORMATS = { '.ts': 'module-typescript', '.mjs': 'module' };

const { KILN_TEST_PACKAGES: index } = process.env;
const packages = new Map(index === undefined ? [] : Object.entries(JSON.parse(readFileSync(index, 'utf8'))));

// npm may have an older Node, without hooks
module.registerHooks?.({
  resolve(specifier, context, next) {
    const { conditions, parentURL } = context;
    const format = FORMATS[specifier.slice(specifier.lastIndexOf('.'))];
    if (format !== undefined && /^\.\.?\//.test(specifier) && parentURL?.startsWith('file:'))
      return { url: new URL(specifier, parentURL).href, format, shortCircuit: true };
    if (specifier === 'ava' && parentURL?.endsWith('.test.ts'))
      return { url: FEW_AT_ONCE, format: 'module-typescript', shortCircuit: true };
    const url = packages.get(specifier.replace(/^file:.*\/node_modules\//, ''));
    if (url !== undefined && conditions.includes('import')) return { url, format: 'module', shortCircuit: true };
    return next(specifier, context);
  },
});
