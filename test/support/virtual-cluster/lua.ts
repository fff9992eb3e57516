import { createRequire } from 'node:module';

/** What a command of Redis answers: an integer, a text, nothing, several of these, or a status. */
export type Reply = number | string | null | readonly Reply[] | { readonly ok: string };

/** Runs a command that a script calls. */
export type Call = (command: readonly string[]) => Reply;

/** As much of Lua's own interface as is needed here, without the conversions of the package: those are slow. */
interface Module {
  readonly HEAPU8: Uint8Array;
  addFunction(run: (state: number) => number, signature: string): number;
  _malloc(bytes: number): number;
  _lua_gettop(state: number): number;
  _lua_settop(state: number, index: number): void;
  _lua_type(state: number, index: number): number;
  _lua_tolstring(state: number, index: number, length: number): number;
  _lua_tonumber(state: number, index: number): number;
  _lua_toboolean(state: number, index: number): number;
  _lua_pushlstring(state: number, text: number, length: number): void;
  _lua_pushnumber(state: number, value: number): void;
  _lua_pushboolean(state: number, value: number): void;
  _lua_pushcclosure(state: number, run: number, values: number): void;
  _lua_createtable(state: number, length: number, fields: number): void;
  _lua_rawgeti(state: number, index: number, at: number): void;
  _lua_rawseti(state: number, index: number, at: number): void;
  _lua_rawset(state: number, index: number): void;
  _lua_setfield(state: number, index: number, name: number): void;
  _lua_getfield(state: number, index: number, name: number): void;
  _lua_pcall(state: number, args: number, results: number, handler: number): number;
  _luaL_newstate(): number;
  _luaL_openlibs(state: number): void;
  _luaL_loadbuffer(state: number, text: number, length: number, name: number): number;
  _luaL_ref(state: number, table: number): number;
}

/** What Buffer has for each encoding, without looking for it by its name. */
type Memory = Buffer & {
  utf8Slice(from: number, to: number): string;
  utf8Write(text: string, at: number, most: number): number;
};

interface Package {
  readonly LuaApi: { initialize(): Promise<{ readonly module: Module }> };
}

const REGISTRY = -10000;
const GLOBALS = -10002;
const TYPE = { nil: 0, boolean: 1, number: 3, string: 4, table: 5 } as const;
const BUFFER = 1 << 20;

/** Lua 5.1, as Redis has it, for its scripts: `KEYS`, `ARGV`, `redis.call`, `redis.pcall` and `cjson.decode`. */
export class Lua {
  readonly #module: Module;
  readonly #state: number;
  /** Where texts are written that Lua reads. */
  readonly #buffer: number;
  readonly #names = new Map<string, number>();
  #heap: Memory;
  #call: Call = () => null;

  private constructor(module: Module) {
    this.#module = module;
    this.#heap = Buffer.from(module.HEAPU8.buffer) as Memory;
    this.#buffer = module._malloc(BUFFER);
    const state = module._luaL_newstate();
    this.#state = state;
    module._luaL_openlibs(state);
    const call = module.addFunction(() => this.#onCall(), 'ii');
    const decode = module.addFunction(() => this.#onDecode(), 'ii');
    this.#library('redis', { call, pcall: call });
    this.#library('cjson', { decode });
  }

  static async start(): Promise<Lua> {
    const { LuaApi } = createRequire(import.meta.url)('wasmoon-lua5.1') as Package;
    return new Lua((await LuaApi.initialize()).module);
  }

  /** @returns what `run` takes */
  compile(text: string): number {
    const module = this.#module;
    const length = this.#write(text);
    if (module._luaL_loadbuffer(this.#state, this.#buffer, length, this.#name('script')) !== 0)
      throw new Error(`a script is no Lua: ${this.#takeText(-1)}`);
    return module._luaL_ref(this.#state, REGISTRY);
  }

  run(script: number, keys: readonly string[], args: readonly string[], call: Call): Reply {
    const module = this.#module;
    const state = this.#state;
    this.#call = call;
    module._lua_settop(state, 0);
    this.#push(keys);
    module._lua_setfield(state, GLOBALS, this.#name('KEYS'));
    this.#push(args);
    module._lua_setfield(state, GLOBALS, this.#name('ARGV'));
    module._lua_rawgeti(state, REGISTRY, script);
    if (module._lua_pcall(state, 0, 1, 0) !== 0) throw new Error(`a script failed: ${this.#takeText(-1)}`);
    return this.#result(-1);
  }

  #library(name: string, functions: Readonly<Record<string, number>>): void {
    const module = this.#module;
    module._lua_createtable(this.#state, 0, 0);
    for (const [field, run] of Object.entries(functions)) {
      module._lua_pushcclosure(this.#state, run, 0);
      module._lua_setfield(this.#state, -2, this.#name(field));
    }
    module._lua_setfield(this.#state, GLOBALS, this.#name(name));
  }

  #onCall(): number {
    const count = this.#module._lua_gettop(this.#state);
    const command: string[] = [];
    for (let at = 1; at <= count; at++) command.push(this.#takeText(at));
    this.#push(this.#call(command));
    return 1;
  }

  #onDecode(): number {
    this.#push(JSON.parse(this.#takeText(1)) as Reply);
    return 1;
  }

  /** Redis gives a script nothing as `false`. */
  #push(value: Reply | { readonly [key: string]: Reply }): void {
    const module = this.#module;
    if (typeof value === 'string') module._lua_pushlstring(this.#state, this.#buffer, this.#write(value));
    else if (typeof value === 'number') module._lua_pushnumber(this.#state, value);
    else if (value === null) module._lua_pushboolean(this.#state, 0);
    else if (Array.isArray(value)) {
      module._lua_createtable(this.#state, value.length, 0);
      for (const [at, item] of (value as readonly Reply[]).entries()) {
        this.#push(item);
        module._lua_rawseti(this.#state, -2, at + 1);
      }
    } else {
      module._lua_createtable(this.#state, 0, 1);
      for (const [key, item] of Object.entries(value)) {
        this.#push(key);
        this.#push(item as Reply);
        module._lua_rawset(this.#state, -3);
      }
    }
  }

  /** What Redis makes of the value that a script returns. */
  #result(index: number): Reply {
    const module = this.#module;
    switch (module._lua_type(this.#state, index)) {
      case TYPE.string:
        return this.#takeText(index);
      case TYPE.number:
        return Math.trunc(module._lua_tonumber(this.#state, index));
      case TYPE.boolean:
        return module._lua_toboolean(this.#state, index) === 1 ? 1 : null;
      case TYPE.table:
        return this.#items();
      default:
        return null;
    }
  }

  /** Of the table on top: a status, or what it has up to the first that is nil. */
  #items(): Reply {
    const module = this.#module;
    module._lua_getfield(this.#state, -1, this.#name('ok'));
    const status = this.#result(-1);
    module._lua_settop(this.#state, -2);
    if (status !== null) return status;
    const items: Reply[] = [];
    for (let at = 1; ; at++) {
      module._lua_rawgeti(this.#state, -1, at);
      const isEnd = module._lua_type(this.#state, -1) === TYPE.nil;
      if (!isEnd) items.push(this.#result(-1));
      module._lua_settop(this.#state, -2);
      if (isEnd) return items;
    }
  }

  #takeText(index: number): string {
    // whole numbers of up to 14 digits are as Redis writes them; scripts pass no others
    const text = this.#module._lua_tolstring(this.#state, index, this.#buffer);
    if (text === 0) throw new Error('a command of Redis takes texts and numbers');
    const heap = this.#memory();
    return heap.utf8Slice(text, text + heap.readUInt32LE(this.#buffer));
  }

  /** @returns the bytes of the text in the buffer */
  #write(text: string): number {
    const length = this.#memory().utf8Write(text, this.#buffer, BUFFER);
    if (length === BUFFER) throw new Error('the text is too long');
    return length;
  }

  /** As a C string, for good. */
  #name(text: string): number {
    let at = this.#names.get(text);
    if (at === undefined) {
      at = this.#module._malloc(text.length + 1);
      this.#memory().write(`${text}\0`, at, 'latin1');
      this.#names.set(text, at);
    }
    return at;
  }

  #memory(): Memory {
    // it moves when it grows
    if (this.#heap.buffer !== this.#module.HEAPU8.buffer)
      this.#heap = Buffer.from(this.#module.HEAPU8.buffer) as Memory;
    return this.#heap;
  }
}
