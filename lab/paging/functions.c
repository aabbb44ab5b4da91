/* The library of scattered.h: functions of one page each. */
#define SCATTERED_LIBRARY
#include "scattered.h"

#define ONE(number)                                                                                \
	__asm__(".text\n.p2align 12\n.globl function_" #number "\n.type function_" #number         \
		", @function\nfunction_" #number ":\n.cfi_startproc\nret\n.fill 4000, 1, 0xcc\n"   \
		".cfi_endproc\n.size function_" #number ", . - function_" #number "\n")
#define TEN(tens)                                                                                  \
	ONE(tens##0);                                                                              \
	ONE(tens##1);                                                                              \
	ONE(tens##2);                                                                              \
	ONE(tens##3);                                                                              \
	ONE(tens##4);                                                                              \
	ONE(tens##5);                                                                              \
	ONE(tens##6);                                                                              \
	ONE(tens##7);                                                                              \
	ONE(tens##8);                                                                              \
	ONE(tens##9)
#define HUNDRED(hundreds)                                                                          \
	TEN(hundreds##0);                                                                          \
	TEN(hundreds##1);                                                                          \
	TEN(hundreds##2);                                                                          \
	TEN(hundreds##3);                                                                          \
	TEN(hundreds##4);                                                                          \
	TEN(hundreds##5);                                                                          \
	TEN(hundreds##6);                                                                          \
	TEN(hundreds##7);                                                                          \
	TEN(hundreds##8);                                                                          \
	TEN(hundreds##9)

HUNDRED(00);
HUNDRED(01);
HUNDRED(02);
HUNDRED(03);
HUNDRED(04);
HUNDRED(05);
HUNDRED(06);
HUNDRED(07);
HUNDRED(08);
HUNDRED(09);
HUNDRED(10);
HUNDRED(11);
HUNDRED(12);
HUNDRED(13);
HUNDRED(14);
HUNDRED(15);
HUNDRED(16);
HUNDRED(17);
HUNDRED(18);
HUNDRED(19);
HUNDRED(20);
HUNDRED(21);
HUNDRED(22);
HUNDRED(23);
HUNDRED(24);
HUNDRED(25);
HUNDRED(26);
HUNDRED(27);
HUNDRED(28);
HUNDRED(29);
HUNDRED(30);
HUNDRED(31);
HUNDRED(32);
HUNDRED(33);
HUNDRED(34);
HUNDRED(35);
HUNDRED(36);
HUNDRED(37);
HUNDRED(38);
HUNDRED(39);
TEN(400);
TEN(401);
TEN(402);
TEN(403);
TEN(404);
TEN(405);
TEN(406);
TEN(407);
TEN(408);
ONE(4090);
ONE(4091);
ONE(4092);
ONE(4093);
ONE(4094);
ONE(4095);
