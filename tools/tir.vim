" SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
" Vim syntax for .tir files. Copy it to ~/.vim/syntax/tir.vim and add to ~/.vimrc:
"     autocmd BufRead,BufNewFile *.tir setlocal filetype=tir
if exists("b:current_syntax")
  finish
endif

syntax keyword tirDeclare kernel fn const configs import let var
syntax keyword tirStatement for in while do if else break continue return yield
syntax keyword tirStatement tiles range where grid threads config by carry with static_assert assume
syntax keyword tirIr meta form facts stages unroll order group persistent
syntax keyword tirQualifier out inout shared local tmem
syntax keyword tirType bool i8 i16 i32 i64 u8 u16 u32 u64
syntax keyword tirType e2m1 e3m2 e2m3 e4m3 e5m2 ue8m0 ue4m3 f16 bf16 tf32 f32 f64
syntax keyword tirConstant true false inf nan None PI LOG2E LN2 INF SHARED_BYTES TENSOR_COLUMNS
syntax keyword tirReserved role ring put get mbarrier stage cluster match struct enum
syntax match tirFunction "\<\h\w*\ze\s*("
syntax match tirNumber "\<\d[0-9_]*\%(\.[0-9_]*\)\?\%([eE][+-]\?\d\+\)\?\>"
syntax match tirNumber "\<0[xX][0-9a-fA-F_]\+\>"
syntax match tirNumber "\<0[bB][01_]\+\>"
syntax region tirString start=+"+ skip=+\\.+ end=+"+ oneline contains=tirEscape
syntax match tirEscape "\\[nt0\"\\]" contained
syntax match tirComment "//.*$" contains=tirTodo,@Spell
syntax region tirComment start="/\*" end="\*/" contains=tirComment,tirTodo,@Spell
syntax keyword tirTodo NOTE XXX contained

highlight default link tirDeclare Keyword
highlight default link tirStatement Statement
highlight default link tirIr PreProc
highlight default link tirQualifier StorageClass
highlight default link tirType Type
highlight default link tirConstant Constant
highlight default link tirReserved Error
highlight default link tirFunction Function
highlight default link tirNumber Number
highlight default link tirString String
highlight default link tirEscape SpecialChar
highlight default link tirComment Comment
highlight default link tirTodo Todo

let b:current_syntax = "tir"
